//! A clock that is set while a controller works: no decision about objects relies on it, so that nothing is repeated, and nothing is
//! reported that is not so.

use std::time::Duration;

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicDeploymentRestart};
use e2e::{
    AuditLog, CHAIN, Clocks, Cluster, Namespace, REPLICA_SETS, Release, WAIT_TIMEOUT, another_image,
    commands, condition, deployment, eventually,
};
use futures::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::json;

/// In seconds. Much longer than any deadline of a rollout or a command.
const TWO_HOURS: i64 = 7200;
const ONE_HOUR: Duration = Duration::from_secs(3600);
/// Of the workload.
const REPLICAS: usize = 4;

fn jump(clocks: &Clocks, seconds: i64) -> Result<()> {
    CHAIN.iter().try_for_each(|controller| clocks.set(*controller, seconds))
}

/// The pods that were created in a namespace.
fn created(log: &AuditLog, namespace: &Namespace) -> Result<usize> {
    let asked = log.by(REPLICA_SETS, &namespace.name)?;
    Ok(asked.iter().filter(|request| request.is("create", "pods") && request.code < 300).count())
}

/// While the work goes on, no status says that it does not.
async fn until_ready(namespace: &Namespace) {
    namespace
        .until("web", "is ready", |web: &BasicDeployment| {
            let Some(status) = &web.status else { return false };
            let progress = condition(&status.conditions, "Progressing");
            let exceeded = progress.is_some_and(|told| told.reason == "ProgressDeadlineExceeded");
            assert!(!exceeded, "{status:#?}");
            status.ready && status.observed_generation == web.metadata.generation
        })
        .await;
}

/// Restarts of the same second are one.
async fn until_another_second() {
    let before = Timestamp::now().as_second();
    eventually("another second has begun", WAIT_TIMEOUT, async || {
        (Timestamp::now().as_second() > before).then_some(()).ok_or("not yet")
    })
    .await;
}

async fn rolls_out_while_the_clock_jumps(clocks: &Clocks, cluster: &Cluster) -> Result<()> {
    let namespace = cluster.namespace("clock").await?;
    let log = AuditLog::from_now()?;
    namespace.create(&deployment("web", i32::try_from(REPLICAS)?)).await?;
    until_ready(&namespace).await;
    assert_eq!(created(&log, &namespace)?, REPLICAS);

    for (round, seconds) in [TWO_HOURS, TWO_HOURS, 0, -TWO_HOURS, 0].into_iter().enumerate() {
        until_another_second().await;
        let log = AuditLog::from_now()?;
        let web = namespace.api::<BasicDeployment>().get("web").await?;
        let restart = format!("restart-{}", web.metadata.resource_version.as_deref().context("a version")?);
        namespace.create(&commands::restart(&web, &restart)).await?;
        jump(clocks, seconds)?;
        namespace
            .until(&restart, "has succeeded", |restart: &BasicDeploymentRestart| {
                commands::condition_of(restart, "Succeeded").is_some_and(|told| {
                    assert_ne!(told.status, "False", "{told:?}");
                    told.status == "True"
                })
            })
            .await;
        until_ready(&namespace).await;
        assert_eq!(created(&log, &namespace)?, REPLICAS, "after a jump by {seconds} s");
        // In the first round, the work may be done before the jump.
        if round == 1 {
            let web = namespace.api::<BasicDeployment>().get("web").await?;
            let conditions = web.status.map(|status| status.conditions).unwrap_or_default();
            let is_late =
                |condition: &Condition| condition.last_transition_time.0 > Timestamp::now() + ONE_HOUR;
            assert!(conditions.iter().any(is_late), "its clock has not jumped: {conditions:#?}");
        }
    }
    namespace
        .merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"image": another_image()}}}))
        .await?;
    until_ready(&namespace).await;
    Ok(())
}

#[tokio::test]
async fn a_clock_that_jumps_by_hours_repeats_nothing_and_ends_nothing() -> Result<()> {
    e2e::needs!(AuditLog, HostProcesses);
    let cluster = Cluster::changing(&CHAIN).await?;
    let clocks = Clocks::make().await?;
    let upgrade = async |controller| {
        let values = clocks.given_to(controller, json!({}))?;
        Release::upgrade(&cluster, controller, &values).await
    };
    let releases = try_join_all(CHAIN.map(upgrade)).await?;
    for controller in CHAIN {
        controller.until_ready(&cluster).await;
    }
    rolls_out_while_the_clock_jumps(&clocks, &cluster).await?;
    try_join_all(releases.into_iter().map(Release::restore)).await?;
    for controller in CHAIN {
        controller.until_ready(&cluster).await;
    }
    Ok(())
}
