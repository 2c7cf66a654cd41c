//! The suite on a local cluster of its own, which is taken down whatever happens.

use anyhow::Result;

use super::{collect, ended, suite::Suite};
use crate::{
    cargo, charts,
    cluster::{
        bring_up::{Wanted, bring_up},
        home::Home,
        take_down::take_down,
    },
    interrupt::Interrupt,
    workspace,
};

/// Builds, brings up, installs, tests, takes down.
pub async fn run(suite: &Suite, interrupt: &Interrupt) -> Result<()> {
    cargo::run(&["build", "--release"], interrupt).await?;
    let home = Home::of(&format!("e2e-{}", std::process::id()))?;
    let result = on_cluster(&home, suite, interrupt).await;
    let result = collect::on_failure(result, home.name(), &home.logs(), home.access().ok().as_ref());
    if suite.keep {
        eprintln!("the cluster is left: `cargo xtask down --name {}` takes it down", home.name());
        return result;
    }
    ended(result, take_down(&home).map(drop))
}

async fn on_cluster(home: &Home, suite: &Suite, interrupt: &Interrupt) -> Result<()> {
    let bin_dir = workspace::release_binaries();
    let wanted = Wanted { nodes: 3, bin_dir: Some(bin_dir.clone()), default_bin_dir: bin_dir };
    interrupt.or(bring_up(home, &wanted)).await?;
    let access = home.access()?;
    charts::install(&access, &charts::all(), interrupt).await?;
    suite.run(&access, "local", &[("CATENA_CLUSTER", home.name().to_owned())], interrupt).await
}
