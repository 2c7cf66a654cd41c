//! Many objects at once, with little memory.

use std::time::Duration;

use anyhow::Result;
use catena_api::{BasicDeployment, BasicReplicaSet};
use e2e::{
    Cluster, Controller, DEPLOYMENTS, Process, REPLICA_SETS, deployment, eventually, is_true, replica_set,
};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{ResourceExt, api::ListParams};
use tokio::time::Instant;

const MEBIBYTE: u64 = 1024 * 1024;

/// Number of concurrent sets by default.
const SETS: usize = 32;
/// Pods of each set: as many as are created concurrently, and those that slow start begins with.
const PODS: i32 = 48;
/// Memory that the controller may use for them, in bytes: the chart's limit leaves as much for the list at a restart.
const MOST: u64 = 48 * MEBIBYTE;
/// Approximate size of each pod, in bytes.
const LARGE: usize = 43_000;

fn large(name: &str) -> BasicReplicaSet {
    let mut set = replica_set(name, PODS);
    for half in ["env.A", "env.B"] {
        set.spec.parameters.insert(half.into(), "x".repeat(LARGE / 2));
    }
    set
}

/// A process of the controller that has done nothing yet: the peak of another test would count.
async fn anew(controller: Controller, cluster: &Cluster) -> Result<Process> {
    let before = controller.until_ready(cluster).await;
    before.kill()?;
    let new = eventually("it runs anew", Duration::from_secs(60), async || {
        let process = controller.until_ready(cluster).await;
        if process.pid == before.pid { Err(before.pid) } else { Ok(process) }
    });
    Ok(new.await)
}

mod alone {
    use super::{
        BasicDeployment, BasicReplicaSet, Cluster, DEPLOYMENTS, Duration, Instant, LARGE, ListParams,
        MEBIBYTE, MOST, PODS, REPLICA_SETS, ResourceExt, Result, SETS, StreamExt, TryStreamExt, anew,
        deployment, eventually, is_true, large, stream,
    };

    #[tokio::test]
    async fn a_hundred_basic_deployments_get_ready_on_little_memory() -> Result<()> {
        e2e::needs!(FakeNodes, Processes);
        let cluster = Cluster::alone().await?;
        let namespace = cluster.namespace("hundred").await?;
        let processes = [anew(DEPLOYMENTS, &cluster).await?, anew(REPLICA_SETS, &cluster).await?];
        let started = Instant::now();

        let all: Vec<_> = (0..100).map(|number| deployment(&format!("web-{number}"), 3)).collect();
        stream::iter(all.iter().map(|deployment| namespace.create(deployment)))
            .buffer_unordered(10)
            .try_collect::<Vec<_>>()
            .await?;
        eventually("each is ready", Duration::from_secs(300), async || {
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

    mod long {
        use super::*;

        #[tokio::test]
        async fn large_pods_of_many_sets_are_made_on_little_memory() -> Result<()> {
            e2e::needs!(FakeNodes, Processes);
            let cluster = Cluster::alone().await?;
            let namespace = cluster.namespace("large").await?;
            let process = anew(REPLICA_SETS, &cluster).await?;

            let all: Vec<_> = (0..SETS).map(|number| large(&format!("web-{number}"))).collect();
            stream::iter(all.iter().map(|set| namespace.create(set)))
                .buffer_unordered(SETS)
                .try_collect::<Vec<_>>()
                .await?;
            let mut most = 0;
            eventually("each is ready", Duration::from_secs(600), async || {
                most = most.max(process.resident().map_err(|error| format!("{error:#}"))?);
                let found = namespace.api::<BasicReplicaSet>().list(&ListParams::default()).await;
                let found = found.map_err(|error| error.to_string())?;
                let is_ready = |set: &&BasicReplicaSet| {
                    set.status.as_ref().is_some_and(|status| is_true(&status.conditions, "Ready"))
                };
                let ready = found.iter().filter(is_ready).count();
                if ready == SETS { Ok(()) } else { Err(format!("{ready} are")) }
            })
            .await;
            println!("{SETS} sets of {PODS} pods of {LARGE} bytes: {} MiB at most", most / MEBIBYTE);
            assert!(most < MOST, "{} MiB", most / MEBIBYTE);
            Ok(())
        }
    }
}
