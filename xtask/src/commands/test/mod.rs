//! `cargo xtask test`: everything that must hold before a change is merged.

mod chart_checks;
mod chart_notes;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::ValueEnum;
use local_cluster::{Interrupt, explain, seconds};

use super::{crds, demo, e2e};
use crate::{cargo, cargo_deny};

/// The options of the checks.
#[derive(clap::Args)]
pub struct Options {
    /// Run only this step; can be given several times
    #[arg(long, value_enum, value_name = "STEP")]
    only: Vec<Step>,
    /// Leave this step out; can be given several times
    #[arg(long, value_enum, value_name = "STEP")]
    skip: Vec<Step>,
    #[command(flatten)]
    e2e: e2e::Suite,
}

/// The steps, in their order: quick ones that often fail come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// cargo fmt --check
    Fmt,
    /// cargo clippy, where a warning is an error
    Clippy,
    /// cargo test of everything but e2e, among it the models in their small size
    Unit,
    /// The committed CRDs match the types, and break nothing of the last releases
    Crds,
    /// cargo deny, which is installed first where it is missing
    Deny,
    /// The common parts are in all charts; helm lint and helm template of every chart, with all of its value files
    Charts,
    /// The end-to-end suite on a cluster of its own
    E2e,
    /// The demo, on a cluster of its own, and a benchmark of a few objects on the same one
    Demo,
}

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// Runs the steps, each even if an earlier one failed, and prints a summary.
pub async fn run(options: Options) -> Result<()> {
    // Here, too, because the step comes late.
    options.e2e.ensure_found()?;
    let interrupt = Interrupt::listen()?;
    let mut done: Vec<(Step, Outcome, Duration)> = Vec::new();
    for step in Step::value_variants() {
        let wanted = (options.only.is_empty() || options.only.contains(step)) && !options.skip.contains(step);
        if !wanted || interrupt.came() {
            continue;
        }
        eprintln!("\n── {} ──", step.name());
        let started = Instant::now();
        let outcome = match step.make(&options, &interrupt).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Failed(explain(&error)),
        };
        if let Outcome::Failed(why) = &outcome {
            eprintln!("{} failed: {why}", step.name());
        }
        done.push((*step, outcome, started.elapsed()));
    }
    sum_up(&done, interrupt.came())
}

fn sum_up(done: &[(Step, Outcome, Duration)], interrupted: bool) -> Result<()> {
    println!();
    let (mut passed, mut failed) = (0, 0);
    for (step, outcome, took) in done {
        let took = seconds(*took);
        let name = step.name();
        match outcome {
            Outcome::Passed => {
                passed += 1;
                println!("✓ {name:<7} {took}");
            }
            Outcome::Failed(why) => {
                failed += 1;
                println!("✗ {name:<7} {took}: {why}");
            }
            Outcome::Skipped(why) => println!("– {name:<7} skipped: {why}"),
        }
    }
    if interrupted {
        println!("interrupted: the steps after this were not made");
    }
    println!("{passed} passed, {failed} failed");
    if failed > 0 || interrupted {
        bail!("the tests did not pass: read the first failure above; repeat one step with `--only STEP`");
    }
    Ok(())
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Unit => "unit",
            Self::Crds => "crds",
            Self::Deny => "deny",
            Self::Charts => "charts",
            Self::E2e => "e2e",
            Self::Demo => "demo",
        }
    }

    async fn make(self, options: &Options, interrupt: &Interrupt) -> Result<Outcome> {
        match self {
            Self::Fmt => cargo::run(&["fmt", "--all", "--check"], interrupt).await?,
            Self::Clippy => {
                let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
                cargo::run(&arguments, interrupt).await?;
            }
            Self::Unit => {
                cargo::run(&["test", "--workspace", "--exclude", "e2e"], interrupt).await?;
            }
            Self::Crds => {
                crds::run(true)?;
                crds::compat::since_the_last_releases()?;
            }
            Self::Deny => return deny(interrupt).await,
            Self::Charts => chart_checks::run(interrupt).await?,
            Self::E2e => e2e::run_locally(&options.e2e, interrupt).await?,
            Self::Demo => demo::rehearse(interrupt).await?,
        }
        Ok(Outcome::Passed)
    }
}

/// Advisories are left to a scheduled job: they come from the network and change by themselves.
async fn deny(interrupt: &Interrupt) -> Result<Outcome> {
    let mut deny = match cargo_deny::command(interrupt).await {
        Ok(deny) => deny,
        Err(error) if interrupt.came() => return Err(error),
        // Without a network, everything else can still be checked.
        Err(error) => {
            return Ok(Outcome::Skipped(format!("cargo-deny could not be installed: {}", explain(&error))));
        }
    };
    interrupt.run(deny.args(["check", "bans", "licenses", "sources"])).await?;
    Ok(Outcome::Passed)
}
