//! Deletions finish, and everything else stays.

use anyhow::Result;
use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicReplicaSet};
use e2e::{
    AuditLog, CHAIN, Cluster, Namespace, REPLICA_SETS, RUNNER, WAIT_TIMEOUT, condition, deployment,
    eventually, kubectl, uids,
};
use k8s_openapi::{
    api::core::v1::{Namespace as CoreNamespace, Pod},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

async fn with_three_pods(namespace: &Namespace) -> Result<Vec<Pod>> {
    namespace.create(&deployment("web", 3)).await?;
    namespace.until_ready("web").await;
    Ok(namespace.until_ready_pods(3).await)
}

async fn until_nothing_is_left(namespace: &Namespace) {
    namespace.until_gone::<BasicDeployment>("web").await;
    namespace.until_collected::<BasicReplicaSet>("web").await;
    eventually("no pod is left", WAIT_TIMEOUT, async || match namespace.pods().await {
        Ok(pods) if pods.is_empty() => Ok(()),
        other => Err(other.map(|pods| e2e::names(&pods))),
    })
    .await;
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
    // The first status comes late if nothing is urgent.
    namespace.until_within(2 * WAIT_TIMEOUT, "web", "waits for the former child", waits).await;
    namespace.merge::<BasicReplicaSet>("web", json!({"metadata": {"finalizers": null}})).await?;
    // Only its end wakes the new one: a settled object is not reconciled by itself.
    namespace.until_ready("web").await;
    assert!(uids(&before).is_disjoint(&uids(&namespace.until_ready_pods(3).await)));
    Ok(())
}

#[tokio::test]
async fn a_deletion_that_a_finalizer_holds_up_is_visible_in_lists() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("held").await?;
    with_three_pods(&namespace).await?;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    namespace.merge::<BasicDeployment>("web", hold.clone()).await?;
    namespace.merge::<BasicReplicaSet>("web", hold).await?;
    namespace.api::<BasicDeployment>().delete("web", &DeleteParams::background()).await?;
    namespace.api::<BasicReplicaSet>().delete("web", &DeleteParams::background()).await?;
    let is_told = |conditions: &[Condition]| {
        let ready = condition(conditions, "Ready");
        ready.is_some_and(|ready| {
            (ready.status.as_str(), ready.reason.as_str()) == ("False", "Terminating")
                && ready.message.contains("example.com/hold")
        })
    };
    namespace
        .until("web", "is reported as being deleted", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| is_told(&status.conditions))
        })
        .await;
    namespace
        .until("web", "is reported as being deleted", |web: &BasicReplicaSet| {
            web.status.as_ref().is_some_and(|status| is_told(&status.conditions))
        })
        .await;
    let row = async |kind| -> Result<Vec<String>> {
        let table = kubectl(&["--namespace", &namespace.name, "get", kind, "web"]).await?;
        Ok(table.lines().nth(1).unwrap_or_default().split_whitespace().map(str::to_owned).collect())
    };
    assert_eq!(row("basicdeployment").await?[..5], ["web", "false", "3/3", "web", "Terminating"]);
    assert_eq!(row("basicreplicaset").await?[..7], ["web", "3", "3", "3", "3", "web", "Terminating"]);
    namespace.merge::<BasicDeployment>("web", json!({"metadata": {"finalizers": null}})).await?;
    namespace.merge::<BasicReplicaSet>("web", json!({"metadata": {"finalizers": null}})).await?;
    until_nothing_is_left(&namespace).await;
    Ok(())
}

#[tokio::test]
async fn a_deleted_command_that_is_bound_to_nothing_says_what_holds_it_up() -> Result<()> {
    let cluster = Cluster::with(&[RUNNER]).await?;
    let namespace = cluster.namespace("unbound").await?;
    let restart = json!({
        "metadata": {"name": "again", "finalizers": ["example.com/hold"]},
        "spec": {"targetRef": {"name": "nobody"}},
    });
    namespace.create::<BasicDeploymentRestart>(&serde_json::from_value(restart)?).await?;
    namespace.delete::<BasicDeploymentRestart>("again").await?;
    let says = |restart: &BasicDeploymentRestart| {
        let conditions = restart.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
        condition(conditions, "Succeeded").is_some_and(|succeeded| {
            (succeeded.status.as_str(), succeeded.reason.as_str()) == ("Unknown", "Terminating")
                && succeeded.message.contains("example.com/hold")
        })
    };
    namespace.until("again", "says what holds it up", says).await;
    let free = json!({"metadata": {"finalizers": null}});
    namespace.merge::<BasicDeploymentRestart>("again", free).await?;
    namespace.until_gone::<BasicDeploymentRestart>("again").await;
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

    cluster.all::<CoreNamespace>().delete(&namespace.name, &DeleteParams::background()).await?;
    cluster.until_namespace_gone(&namespace.name).await;
    let left = namespace.api::<BasicDeployment>().list_metadata(&ListParams::default()).await?;
    assert!(left.items.is_empty(), "{left:?}");
    // Refused writes in a terminating namespace are not retried without end.
    let requests = log.by(REPLICA_SETS, &namespace.name)?;
    let refused = requests.iter().filter(|request| request.code >= 400).count();
    assert!(refused <= 20, "{refused} requests in vain: {:?}", e2e::Tally::of(&requests));
    Ok(())
}
