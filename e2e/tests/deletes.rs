//! What is deleted ends, and what is to stay stays.

use std::time::Duration;

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicReplicaSet};
use e2e::{
    AuditLog, CHAIN, Cluster, Namespace, PATIENCE, REPLICA_SETS, condition, deployment, eventually,
    replica_set, uids,
};
use k8s_openapi::api::core::v1::{Namespace as CoreNamespace, Pod};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

async fn with_three_pods(namespace: &Namespace) -> Result<Vec<Pod>> {
    namespace.create(&deployment("web", 3)).await?;
    namespace.until_ready("web").await;
    Ok(namespace.until_ready_pods(3).await)
}

async fn until_nothing_is_left(namespace: &Namespace) {
    namespace.until_gone::<BasicDeployment>("web").await;
    namespace.until_gone::<BasicReplicaSet>("web").await;
    eventually("no pod is left", PATIENCE, async || match namespace.pods().await {
        Ok(pods) if pods.is_empty() => Ok(()),
        other => Err(other.map(|pods| e2e::names(&pods))),
    })
    .await;
}

/// The garbage collector looks for new kinds twice a minute. Of a kind that it does not know yet it orphans nothing: what the
/// owner leaves is taken for garbage later.
async fn until_the_garbage_collector_knows_sets(namespace: &Namespace) -> Result<()> {
    namespace.create(&replica_set("probe", 0)).await?;
    namespace.api::<BasicReplicaSet>().delete("probe", &DeleteParams::orphan()).await?;
    let is_gone = async || match namespace.api::<BasicReplicaSet>().get_opt("probe").await {
        Ok(None) => Ok(()),
        other => Err(other),
    };
    eventually("the garbage collector knows BasicReplicaSets", 2 * PATIENCE, is_gone).await;
    Ok(())
}

fn pods_created(log: &AuditLog, namespace: &Namespace) -> Result<usize> {
    let requests = log.by(REPLICA_SETS, &namespace.name)?;
    Ok(requests.iter().filter(|request| request.is("create", "pods") && request.code == 201).count())
}

#[tokio::test]
async fn deleted_in_the_background_nothing_is_left() -> Result<()> {
    e2e::needs!(AuditLog);
    deletes_everything(&DeleteParams::background()).await
}

#[tokio::test]
async fn deleted_in_the_foreground_nothing_is_left() -> Result<()> {
    e2e::needs!(AuditLog);
    deletes_everything(&DeleteParams::foreground()).await
}

async fn deletes_everything(how: &DeleteParams) -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("delete").await?;
    let log = AuditLog::from_now()?;
    with_three_pods(&namespace).await?;

    namespace.api::<BasicDeployment>().delete("web", how).await?;
    until_nothing_is_left(&namespace).await;
    assert_eq!(pods_created(&log, &namespace)?, 3, "pods were made anew while they were deleted");
    Ok(())
}

#[tokio::test]
async fn a_deployment_that_comes_back_takes_its_orphans_back() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("orphan").await?;
    until_the_garbage_collector_knows_sets(&namespace).await?;
    let log = AuditLog::from_now()?;
    let before = with_three_pods(&namespace).await?;
    let child = namespace.until_set_ready("web").await;

    namespace.api::<BasicDeployment>().delete("web", &DeleteParams::orphan()).await?;
    namespace.until_gone::<BasicDeployment>("web").await;
    let orphan = namespace
        .until("web", "is left without an owner", |set: &BasicReplicaSet| set.owner_references().is_empty())
        .await;
    assert_eq!(orphan.uid(), child.uid());

    let web = namespace.create(&deployment("web", 3)).await?;
    let ready = namespace.until_ready("web").await;
    let adopted = namespace.api::<BasicReplicaSet>().get("web").await?;
    assert_eq!(adopted.uid(), child.uid(), "it is another child");
    assert_eq!(
        adopted.owner_references().iter().map(|owner| &owner.uid).collect::<Vec<_>>(),
        [&web.uid().context("uid")?]
    );
    assert_eq!(ready.status.and_then(|status| status.child).map(|child| child.uid), child.uid());
    assert_eq!(uids(&namespace.until_ready_pods(3).await), uids(&before));
    assert_eq!(pods_created(&log, &namespace)?, 3);
    Ok(())
}

#[tokio::test]
async fn a_deployment_that_is_made_again_waits_for_what_the_former_one_left_and_no_longer() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("again").await?;
    let before = with_three_pods(&namespace).await?;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    namespace.merge::<BasicReplicaSet>("web", hold).await?;
    namespace.delete::<BasicDeployment>("web").await?;
    namespace.until_gone::<BasicDeployment>("web").await;

    namespace.create(&deployment("web", 3)).await?;
    let waits = |web: &BasicDeployment| {
        let ready = web.status.as_ref().and_then(|status| condition(&status.conditions, "Ready"));
        ready.is_some_and(|ready| ready.reason == "FormerChildLeaving")
    };
    // The first status comes late where nothing is urgent.
    namespace.until_within(2 * PATIENCE, "web", "waits for the former child", waits).await;
    namespace.merge::<BasicReplicaSet>("web", json!({"metadata": {"finalizers": null}})).await?;
    // Nothing but its end wakes the new one: what has settled does not look again by itself.
    namespace.until_ready("web").await;
    assert!(uids(&before).is_disjoint(&uids(&namespace.until_ready_pods(3).await)));
    Ok(())
}

#[tokio::test]
async fn a_set_that_comes_back_takes_its_orphans_back() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("orphans").await?;
    until_the_garbage_collector_knows_sets(&namespace).await?;
    let log = AuditLog::from_now()?;
    let before = with_three_pods(&namespace).await?;
    let child = namespace.until_set_ready("web").await;

    // The BasicDeployment makes another one at once.
    namespace.api::<BasicReplicaSet>().delete("web", &DeleteParams::orphan()).await?;
    let other = namespace
        .until("web", "is another one, which owns the pods", |set: &BasicReplicaSet| {
            let owns_all = set.status.as_ref().is_some_and(|status| status.active == 3);
            set.uid() != child.uid() && owns_all
        })
        .await;
    let after = namespace
        .until_pods("the three pods have the new owner", |pods| {
            let is_owned = |pod: &Pod| {
                let owners = pod.meta().owner_references.iter().flatten();
                owners.into_iter().any(|owner| Some(&owner.uid) == other.metadata.uid.as_ref())
            };
            pods.len() == 3 && pods.iter().all(is_owned)
        })
        .await;
    assert_eq!(uids(&after), uids(&before));
    assert_eq!(pods_created(&log, &namespace)?, 3);
    namespace.until_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn a_namespace_with_basic_deployments_ends() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("ends").await?;
    let log = AuditLog::from_now()?;
    for number in 0..5 {
        namespace.create(&deployment(&format!("web-{number}"), 4)).await?;
    }
    namespace.until_ready_pods(20).await;

    let all = cluster.all::<CoreNamespace>();
    all.delete(&namespace.name, &DeleteParams::background()).await?;
    eventually("the namespace is gone", Duration::from_secs(60), async || {
        match all.get_opt(&namespace.name).await {
            Ok(None) => Ok(()),
            Ok(Some(left)) => Err(e2e::yaml(&left)),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
    let left = kube::Api::<BasicDeployment>::all(cluster.client.clone()).list(&ListParams::default()).await?;
    assert!(left.iter().all(|deployment| deployment.namespace().as_ref() != Some(&namespace.name)));
    // What is refused in a namespace that ends is not tried again and again.
    let requests = log.by(REPLICA_SETS, &namespace.name)?;
    let refused = requests.iter().filter(|request| request.code >= 400).count();
    assert!(refused <= 20, "{refused} requests in vain: {:?}", e2e::Tally::of(&requests));
    Ok(())
}
