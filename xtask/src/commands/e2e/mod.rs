//! `cargo xtask e2e`: the end-to-end suite, on a cluster of its own or on the current one.

mod kind;
mod local;
mod suite;

use anyhow::Result;
use clap::ValueEnum;

use crate::{interrupt::Interrupt, kind as kind_cluster};

pub use suite::Suite;

/// What is tested, and where.
#[derive(clap::Args)]
pub struct Options {
    /// The cluster; by default kind where Docker and kind answer, else local
    #[arg(long, value_enum, value_name = "CLUSTER")]
    on: Option<On>,
    /// The image of kind's nodes; the one that kind comes with by default
    #[arg(long, value_name = "IMAGE")]
    node_image: Option<String>,
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
}

/// Runs the suite.
pub async fn run(options: &Options) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let on = options.on.unwrap_or_else(choose);
    match on {
        On::Local => local::run(&options.suite, &interrupt).await,
        On::Kind => kind::run(&options.suite, options.node_image.as_deref(), &interrupt).await,
    }
}

/// Runs the suite on a local cluster.
pub async fn run_locally(suite: &Suite, interrupt: &Interrupt) -> Result<()> {
    local::run(suite, interrupt).await
}

fn choose() -> On {
    match kind_cluster::problem() {
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
