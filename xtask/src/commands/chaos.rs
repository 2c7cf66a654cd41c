//! `cargo xtask chaos`: stories that are told while faults befall the controllers, on a cluster of their own.

use anyhow::Result;
use clap::ValueEnum;
use local_cluster::Interrupt;

use super::e2e::{Suite, run_locally};

/// The test that takes all of these.
const TEST: &str = "chaos_as_it_is_asked_for";

/// Which faults befall the controllers, and for how long.
#[derive(clap::Args)]
pub struct Options {
    /// The seed that the faults are chosen by; another one each time by default, which is printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Minutes after which no new story starts
    #[arg(long, default_value_t = 5, value_name = "M")]
    minutes: u64,
    /// Go through all faults of this sort, one per story, instead of random ones
    #[arg(long, value_enum)]
    every: Option<Every>,
    /// Replay one story with the faults that a run has printed
    #[arg(long, value_name = "JSON", conflicts_with = "every")]
    plan: Option<String>,
    /// Keep the cluster afterwards
    #[arg(long)]
    keep: bool,
}

/// What there is one story for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Every {
    /// Each crash point: before each write of each controller, after it, and after its answer
    Crash,
    /// A hand-over to a second replica at each write of each controller
    HandOver,
    /// Each kind of fault for each controller, at a random request
    Kind,
    /// Each fault at each request; several thousand stories
    Fault,
}

/// Brings a cluster up, tells the stories, and takes it down.
pub async fn run(options: &Options) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    run_locally(&options.suite(), &interrupt).await
}

impl Options {
    fn suite(&self) -> Suite {
        let mut variables = vec![("CATENA_CHAOS_MINUTES", self.minutes.to_string())];
        variables.extend(self.seed.map(|seed| ("CATENA_CHAOS_SEED", seed.to_string())));
        variables.extend(self.plan.clone().map(|plan| ("CATENA_CHAOS_PLAN", plan)));
        let every = self.every.and_then(|every| every.to_possible_value());
        variables.extend(every.map(|every| ("CATENA_CHAOS_EVERY", every.get_name().to_owned())));
        Suite::on_request(TEST, variables, self.keep)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn a_plan_is_replayed_alone() {
        assert!(Line::try_parse_from(["chaos", "--plan", "[]", "--every", "crash"]).is_err());
        assert!(Line::try_parse_from(["chaos", "--plan", "[]"]).is_ok());
        assert!(Line::try_parse_from(["chaos", "--seed", "7", "--minutes", "60"]).is_ok());
    }
}
