//! A controller that is killed at any moment continues where it was: no pod is created twice, and none is lost.

use anyhow::Result;
use catena_api::{BasicDeployment, BasicReplicaSet};
use e2e::{
    AuditLog, CHAIN, Cluster, Controller, DEPLOYMENTS, Namespace, REPLICA_SETS, Recorded, Recording, Tally,
    deployment, uids,
};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;

/// Kills a controller, and waits until it runs again.
async fn kill(cluster: &Cluster, controllers: &[Controller]) -> Result<()> {
    let mut killed = Vec::new();
    for controller in controllers {
        killed.push(controller.process(cluster).await?);
    }
    for process in &killed {
        process.kill()?;
    }
    for process in &killed {
        process.until_replaced(cluster).await;
    }
    Ok(())
}

async fn until_running(cluster: &Cluster) {
    for controller in [DEPLOYMENTS, REPLICA_SETS] {
        controller.until_ready(cluster).await;
    }
}

async fn scale(namespace: &Namespace, replicas: i32) -> Result<()> {
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"replicas": replicas}})).await?;
    Ok(())
}

#[tokio::test]
async fn a_replicaset_controller_killed_while_it_scales_makes_no_pod_twice() -> Result<()> {
    e2e::needs!(FakeNodes, Processes);
    let cluster = Cluster::changing(&CHAIN).await?;
    until_running(&cluster).await;
    let namespace = cluster.namespace("scales").await?;
    namespace.create(&deployment("web", 0)).await?;
    namespace.until_ready("web").await;
    let recording = Recording::start(&namespace).await;

    scale(&namespace, 60).await?;
    recording.until(|now| now.alive >= 4).await;
    kill(&cluster, &[REPLICA_SETS]).await?;
    recording.until(|now| now.alive == 60).await;

    scale(&namespace, 120).await?;
    recording.until(|now| now.alive >= 90).await;
    kill(&cluster, &[REPLICA_SETS]).await?;
    recording.until(|now| now.ready == 120).await;

    scale(&namespace, 20).await?;
    recording.until(|now| now.alive <= 80).await;
    kill(&cluster, &[REPLICA_SETS]).await?;
    namespace.until_ready_pods(20).await;
    namespace.until_ready("web").await;
    // Not counted in the audit log, where a request of a killed sender looks failed.
    let Recorded { most, made, .. } = recording.so_far();
    assert_eq!((most, made), (120, 120), "at once, and in all");
    Ok(())
}

#[tokio::test]
async fn a_replicaset_controller_killed_while_it_replaces_pods_keeps_the_budget() -> Result<()> {
    e2e::needs!(Processes);
    let cluster = Cluster::changing(&CHAIN).await?;
    until_running(&cluster).await;
    let namespace = cluster.namespace("rolls").await?;
    namespace.create(&deployment("web", 8)).await?;
    namespace.until_ready("web").await;
    let before = namespace.until_ready_pods(8).await;
    let recording = Recording::start(&namespace).await;

    let change = json!({"spec": {"parameters": {"env.VERSION": "2"}}});
    namespace.merge::<BasicDeployment>("web", change).await?;
    recording.until(|now| now.most > 8).await;
    kill(&cluster, &[REPLICA_SETS]).await?;
    namespace
        .until_pods("eight other pods serve", |now| {
            now.len() == 8 && now.iter().all(e2e::is_ready) && uids(now).is_disjoint(&uids(&before))
        })
        .await;
    namespace.until_ready("web").await;
    let Recorded { most, fewest_ready, made, .. } = recording.so_far();
    assert!(most <= 10, "{most} pods at once");
    assert!(fewest_ready >= 6, "only {fewest_ready} ready pods");
    assert_eq!(made, 16, "eight of each version, and no more");
    Ok(())
}

#[tokio::test]
async fn a_deployment_controller_killed_at_many_moments_has_one_child() -> Result<()> {
    e2e::needs!(AuditLog, Processes);
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    until_running(&cluster).await;
    let namespace = cluster.namespace("parent").await?;
    let log = AuditLog::from_now()?;

    // Before it could act.
    namespace.create(&deployment("web", 4)).await?;
    kill(&cluster, &[DEPLOYMENTS]).await?;
    namespace.until_ready("web").await;

    // While its child is scaled and changed.
    let change = json!({"spec": {"replicas": 8, "parameters": {"env.VERSION": "2"}}});
    namespace.merge::<BasicDeployment>("web", change).await?;
    namespace.until("web", "is scaled", |set: &BasicReplicaSet| set.spec.replicas == 8).await;
    kill(&cluster, &[DEPLOYMENTS]).await?;
    namespace.until_ready("web").await;
    namespace.until_ready_pods(8).await;

    let children = namespace.api::<BasicReplicaSet>().list(&ListParams::default()).await?;
    assert_eq!(children.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["web"]);
    let requests = log.by(DEPLOYMENTS, &namespace.name)?;
    let made = |request: &&e2e::Request| request.is("patch", "basicreplicasets") && request.code == 201;
    // A request that was under way at a kill may look failed.
    assert!(requests.iter().filter(made).count() <= 1, "{:?}", Tally::of(&requests));
    Ok(())
}

#[tokio::test]
async fn both_killed_at_once_go_on_together() -> Result<()> {
    e2e::needs!(Processes);
    let cluster = Cluster::changing(&CHAIN).await?;
    until_running(&cluster).await;
    let namespace = cluster.namespace("both").await?;
    namespace.create(&deployment("web", 6)).await?;
    namespace.until_ready("web").await;
    let before = namespace.until_ready_pods(6).await;
    let recording = Recording::start(&namespace).await;

    let change = json!({"spec": {"replicas": 16, "parameters": {"env.VERSION": "2"}}});
    namespace.merge::<BasicDeployment>("web", change).await?;
    recording.until(|now| now.alive > 6).await;
    kill(&cluster, &[DEPLOYMENTS, REPLICA_SETS]).await?;
    // Changes while no controller ran are noticed afterwards.
    scale(&namespace, 8).await?;
    namespace
        .until_pods("eight other pods serve", |now| {
            now.len() == 8 && now.iter().all(e2e::is_ready) && uids(now).is_disjoint(&uids(&before))
        })
        .await;
    namespace.until_ready("web").await;
    until_running(&cluster).await;
    Ok(())
}
