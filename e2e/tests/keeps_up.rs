//! Many objects at once, on little memory.

use std::time::Duration;

use anyhow::Result;
use catena_api::BasicDeployment;
use e2e::{Cluster, DEPLOYMENTS, REPLICA_SETS, deployment, eventually};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{ResourceExt, api::ListParams};
use tokio::time::Instant;

const MEBIBYTE: u64 = 1024 * 1024;

#[tokio::test]
async fn a_hundred_basic_deployments_get_ready_on_little_memory() -> Result<()> {
    e2e::needs!(FakeNodes, Processes);
    let cluster = Cluster::alone().await?;
    let namespace = cluster.namespace("hundred").await?;
    let processes = [DEPLOYMENTS.until_ready(&cluster).await, REPLICA_SETS.until_ready(&cluster).await];
    let started = Instant::now();

    let all: Vec<_> = (0..100).map(|number| deployment(&format!("web-{number}"), 3)).collect();
    stream::iter(all.iter().map(|deployment| namespace.create(deployment)))
        .buffer_unordered(10)
        .try_collect::<Vec<_>>()
        .await?;
    eventually("each is ready", Duration::from_secs(120), async || {
        let found = namespace.api::<BasicDeployment>().list(&ListParams::default()).await;
        let found = found.map_err(|error| error.to_string())?;
        let is_ready = |one: &&BasicDeployment| one.status.as_ref().is_some_and(|status| status.ready);
        let ready = found.iter().filter(is_ready).count();
        if ready == 100 {
            return Ok(());
        }
        let waiting = found.iter().find(|one| !is_ready(one)).map(ResourceExt::name_any);
        Err(format!("{ready} are; not {waiting:?}"))
    })
    .await;
    let took = started.elapsed();
    namespace.until_ready_pods(300).await;

    for (controller, process) in [DEPLOYMENTS, REPLICA_SETS].into_iter().zip(&processes) {
        let (resident, processor) = (process.resident()?, process.processor_time()?);
        println!(
            "{}: {} MiB, {processor:?} of processor time so far; all were ready after {took:?}",
            controller.name(),
            resident / MEBIBYTE
        );
        assert!(resident < 40 * MEBIBYTE, "{} takes {} MiB", controller.name(), resident / MEBIBYTE);
        assert_eq!(controller.process(&cluster).await?.pid, process.pid, "it was restarted");
    }
    Ok(())
}
