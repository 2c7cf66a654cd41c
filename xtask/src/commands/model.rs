//! `cargo xtask model`

use anyhow::Result;
use local_cluster::Interrupt;

use crate::cargo;

/// How large the models are.
#[derive(clap::Args)]
pub struct Options {
    /// Larger models, which take minutes
    #[arg(long)]
    full: bool,
    /// Only the models whose name contains this, and no sabotage
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Seed of the random histories of the whole chain
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

/// Runs the models, and prints what came of each.
pub async fn run(options: &Options) -> Result<()> {
    let seed = options.seed.to_string();
    let mut arguments = vec!["run", "--package", "model", "--quiet", "--", "--seed", &seed];
    arguments.extend(options.full.then_some("--full"));
    if let Some(name) = &options.only {
        arguments.extend(["--only", name]);
    }
    cargo::run(&arguments, &Interrupt::listen()?).await
}
