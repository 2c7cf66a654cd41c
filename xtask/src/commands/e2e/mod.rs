//! `cargo xtask e2e`: the end-to-end suite, on clusters of its own or on the current one.

mod current;
mod kind;
mod local;
mod suite;
mod times;

use anyhow::{Result, bail};
use clap::ValueEnum;
use local_cluster::{Interrupt, kind_problem};

use current::{Current, OnCurrent};

pub use suite::Suite;

/// The options of the suite.
#[derive(clap::Args)]
pub struct Options {
    /// The cluster; by default kind if Docker and kind are available, otherwise local
    #[arg(long, value_enum, value_name = "CLUSTER")]
    on: Option<On>,
    /// Only this file of e2e/tests, or the tests with this in their name; can be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// With --on kind: the image of its nodes, of Kubernetes 1.32 or later; kind's own one by default
    #[arg(long, value_name = "IMAGE")]
    node_image: Option<String>,
    #[command(flatten)]
    current: OnCurrent,
    #[command(flatten)]
    suite: Suite,
}

/// A kind of cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum On {
    /// The control plane as local processes, with fake nodes; controllers run as processes of this machine
    Local,
    /// Real kubelets and real images, on Docker
    Kind,
    /// The cluster of the current kubeconfig context, with images that it has or can pull; needs --yes
    Current,
}

/// Runs the suite.
pub async fn run(options: &Options) -> Result<()> {
    let suite = options.suite.narrowed_to(&options.only);
    let on = options.on.unwrap_or_else(choose);
    options.fit(on)?;
    let interrupt = Interrupt::listen()?;
    match on {
        On::Local => local::run(&suite, suite.choose(&interrupt).await?, &interrupt).await,
        On::Kind => {
            let chosen = suite.choose(&interrupt).await?;
            kind::run(&suite, chosen, options.node_image.as_deref(), &interrupt).await
        }
        On::Current => {
            // First, because a refusal would otherwise come after a build.
            let current = Current::checked(&options.current, &interrupt).await?;
            current.run(&suite, suite.choose(&interrupt).await?, &interrupt).await
        }
    }
}

/// Runs the suite on a local cluster.
pub async fn run_locally(suite: &Suite, interrupt: &Interrupt) -> Result<()> {
    local::run(suite, suite.choose(interrupt).await?, interrupt).await
}

impl Options {
    /// Fails if an option does not apply, instead of ignoring it.
    fn fit(&self, on: On) -> Result<()> {
        if self.node_image.is_some() && on != On::Kind {
            bail!("--node-image is for kind: add `--on kind`");
        }
        if self.current.are_given() && on != On::Current {
            bail!("--yes and --values are for the current cluster: add `--on current`");
        }
        Ok(())
    }
}

fn choose() -> On {
    match kind_problem() {
        None => {
            println!("on kind, because Docker and kind answer; `--on local` needs neither");
            On::Kind
        }
        Some(problem) => {
            println!("on a local cluster, because {problem}; `--on kind` needs it");
            On::Local
        }
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

    fn options(line: &[&str]) -> Options {
        Line::try_parse_from([&["e2e"], line].concat()).unwrap().options
    }

    #[test]
    fn a_part_of_the_suite_is_chosen_by_name_or_after_two_dashes() {
        let chosen = options(&["--only", "heals", "--only", "rolls_out", "--", "scales"]);
        assert_eq!(chosen.only, ["heals", "rolls_out"]);
        assert!(chosen.suite.is_a_part());
    }

    #[test]
    fn what_does_not_fit_the_cluster_is_refused() {
        for (line, on, fits) in [
            (&["--yes"][..], On::Current, true),
            (&["--yes"], On::Local, false),
            (&["--values", "x.yaml"], On::Kind, false),
            (&["--node-image", "x"], On::Kind, true),
            (&["--node-image", "x"], On::Current, false),
        ] {
            assert_eq!(options(line).fit(on).is_ok(), fits, "{line:?} {on:?}");
        }
    }
}
