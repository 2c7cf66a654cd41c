//! The suite on a kind cluster of its own: real kubelets, real images.

use anyhow::{Result, bail};
use local_cluster::{Interrupt, KindCluster, Toolchain, kind_problem};

use super::suite::{Chosen, Suite};
use crate::{
    cargo, charts,
    cluster::{Cluster, temporary_name},
    commands,
    images::{self, PLUGIN, WORKLOAD, reference},
    post_mortem::{ended, on_failure},
};

/// Builds the images, creates, installs, tests, deletes.
pub async fn run(
    suite: &Suite,
    chosen: Chosen,
    node_image: Option<&str>,
    interrupt: &Interrupt,
) -> Result<()> {
    if let Some(problem) = kind_problem() {
        bail!("there can be no kind cluster: {problem}; `--on local` needs neither Docker nor kind");
    }
    // First, because a missing Go would otherwise be noticed after all the builds.
    interrupt.or(Toolchain::clients()).await?;
    let mut programs = images::programs();
    programs.push(WORKLOAD.to_owned());
    let archives = commands::images::write(&programs, interrupt).await?;
    cargo::build(&[PLUGIN.to_owned()], interrupt).await?;

    let name = temporary_name("e2e");
    let cluster = KindCluster::named(&name)?;
    // From here on it is deleted in any case.
    cluster.ensure_new()?;
    let result = async {
        cluster.create(node_image, interrupt).await?;
        cluster.load(&archives, interrupt).await?;
        on_cluster(&cluster, suite, chosen, interrupt).await
    }
    .await;
    let result = on_failure(result, cluster.name(), &cluster.logs(), || cluster.access().ok());
    if suite.keep {
        eprintln!("the cluster is left: `cargo xtask down --name {name}` takes it down");
        return result;
    }
    ended(result, cluster.delete())
}

async fn on_cluster(kind: &KindCluster, suite: &Suite, chosen: Chosen, interrupt: &Interrupt) -> Result<()> {
    let cluster = Cluster::on_kind(kind)?;
    charts::install(&cluster, &charts::of_the_suite(), interrupt).await?;
    let variables = [("CATENA_KIND", kind.name().to_owned()), ("CATENA_WORKLOAD_IMAGE", reference(WORKLOAD))];
    let queue = suite.queue(chosen.alone);
    let result = suite.run_in_turn(&chosen.shared, &queue, &cluster, "kind", &variables, interrupt).await;
    suite.sum_up(&[&cluster.access], result, interrupt)
}
