//! The suite on a local cluster of its own, which is always taken down.

use anyhow::Result;
use local_cluster::{Interrupt, LocalCluster, Wanted};

use super::suite::Suite;
use crate::{
    cargo, charts,
    cluster::{Cluster, temporary},
    post_mortem::{ended, on_failure},
    workspace,
};

/// Builds, brings up, installs, tests, takes down.
pub async fn run(suite: &Suite, interrupt: &Interrupt) -> Result<()> {
    cargo::run(&["build", "--release"], interrupt).await?;
    let cluster = temporary("e2e")?;
    let result = on_cluster(&cluster, suite, interrupt).await;
    let result = on_failure(result, cluster.name(), &cluster.logs(), || cluster.access().ok());
    if suite.keep {
        eprintln!("the cluster is left: `cargo xtask down --name {}` takes it down", cluster.name());
        return result;
    }
    ended(result, cluster.take_down().map(drop))
}

async fn on_cluster(local: &LocalCluster, suite: &Suite, interrupt: &Interrupt) -> Result<()> {
    let bin_dir = workspace::release_binaries()?;
    let wanted = Wanted { nodes: 3, bin_dir: Some(bin_dir.clone()), default_bin_dir: bin_dir };
    interrupt.or(local.bring_up(&wanted)).await?;
    let cluster = Cluster::local(local)?;
    charts::install(&cluster, &charts::all(), interrupt).await?;
    suite.run(&cluster, "local", &[("CATENA_CLUSTER", local.name().to_owned())], interrupt).await
}
