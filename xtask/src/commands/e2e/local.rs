//! The suite on local clusters of its own, which are always taken down: one for the tests that share it, and beside it one
//! for those that want it alone, until the first has time for these, too.

use anyhow::Result;
use futures::future::join_all;
use local_cluster::{Interrupt, LocalCluster, Wanted};

use super::suite::{Chosen, Queue, Suite};
use crate::{
    cargo, charts,
    cluster::{Cluster, temporary},
    post_mortem::{ended, on_failure},
    workspace::{self, Profile},
};

/// A cluster, and the tests that share it, if there are any.
struct Part {
    shared: Vec<String>,
    cluster: LocalCluster,
}

/// Builds, brings up, installs, tests, takes down.
pub async fn run(suite: &Suite, chosen: Chosen, interrupt: &Interrupt) -> Result<()> {
    cargo::run(&["build"], interrupt).await?;
    let Chosen { shared, alone } = chosen;
    let mut parts = Vec::new();
    if !shared.is_empty() {
        parts.push(Part { shared, cluster: temporary("e2e")? });
    }
    if !alone.is_empty() {
        parts.push(Part { shared: Vec::new(), cluster: temporary("e2e-alone")? });
    }
    let queue = suite.queue(alone);
    let results = join_all(parts.iter().map(|part| part.run(suite, &queue, interrupt))).await;
    let result = results.into_iter().fold(Ok(()), ended);
    let accesses: Vec<_> = parts.iter().filter_map(|part| part.cluster.access().ok()).collect();
    let result = suite.sum_up(&accesses.iter().collect::<Vec<_>>(), result, interrupt);
    if suite.keep {
        for Part { cluster, .. } in &parts {
            eprintln!("the cluster is left: `cargo xtask down --name {}` takes it down", cluster.name());
        }
        return result;
    }
    parts.iter().fold(result, |result, part| ended(result, part.cluster.take_down().map(drop)))
}

impl Part {
    async fn run(&self, suite: &Suite, queue: &Queue, interrupt: &Interrupt) -> Result<()> {
        let result = Box::pin(self.on_cluster(suite, queue, interrupt)).await;
        on_failure(result, self.cluster.name(), &self.cluster.logs(), || self.cluster.access().ok())
    }

    async fn on_cluster(&self, suite: &Suite, queue: &Queue, interrupt: &Interrupt) -> Result<()> {
        let bin_dir = workspace::binaries(Profile::Development)?;
        let wanted = Wanted { nodes: 3, bin_dir: Some(bin_dir.clone()), default_bin_dir: bin_dir };
        interrupt.or(self.cluster.bring_up(&wanted)).await?;
        let cluster = Cluster::local(&self.cluster)?;
        charts::install(&cluster, &charts::of_the_suite(), interrupt).await?;
        let variables = [("CATENA_CLUSTER", self.cluster.name().to_owned())];
        suite.run_in_turn(&self.shared, queue, &cluster, "local", &variables, interrupt).await
    }
}
