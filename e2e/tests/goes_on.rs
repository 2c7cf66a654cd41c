//! A failure of one pod or one step holds up neither the other pods nor the other steps.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_api::{BasicReplicaSet, keys};
use e2e::{
    Cluster, Namespace, Need, Pace, REPLICA_SETS, WAIT_TIMEOUT, condition, eventually, forbid_unless, has,
    kubectl, names, permit, replica_set, uids,
};
use k8s_openapi::{
    api::core::v1::{Pod, ResourceQuota},
    apimachinery::pkg::util::intstr::IntOrString::Int,
};
use kube::ResourceExt;
use serde_json::json;
use tokio::{select, time::sleep};

async fn with_pods(namespace: &Namespace, count: usize) -> Result<Vec<Pod>> {
    namespace.create(&replica_set("web", i32::try_from(count)?)).await?;
    let pods = namespace.until_ready_pods(count).await;
    namespace.until_set_ready("web").await;
    Ok(pods)
}

/// Detaches a pod from its set, as one does for debugging: the set no longer sees it.
async fn quarantine(namespace: &Namespace, pod: &str) -> Result<()> {
    let edit = json!({"metadata": {"ownerReferences": null, "labels": {keys::REPLICA_SET_UID: null}}});
    namespace.merge::<Pod>(pod, edit).await?;
    Ok(())
}

fn has_version(pod: &Pod, version: &str) -> bool {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let mut variables = container.into_iter().flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| variable.name == "VERSION" && variable.value.as_deref() == Some(version))
}

#[tokio::test]
async fn a_pod_that_is_taken_out_for_debugging_keeps_its_name_and_stops_no_other() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("quarantine").await?;
    let pods = with_pods(&namespace, 6).await?;

    let taken_out = pods[0].name_any();
    quarantine(&namespace, &taken_out).await?;
    for pod in &pods[1..4] {
        namespace.delete::<Pod>(&pod.name_any()).await?;
    }
    let now = namespace.until_ready_pods(7).await;
    assert!(names(&now).contains(&taken_out), "the pod that is looked into is gone");
    let set = namespace.until_set_ready("web").await;
    assert_eq!(set.status.context("status")?.active, 6);

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"parameters": {"env.VERSION": "2"}}})).await?;
    namespace
        .until_pods("all others are replaced", |pods| {
            let new = pods.iter().filter(|pod| e2e::is_ready(pod) && has_version(pod, "2"));
            pods.len() == 7 && new.count() == 6
        })
        .await;
    namespace.until_set_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn a_rollout_under_a_full_quota_goes_on_as_fast_as_pods_leave() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("full").await?;
    let quota: ResourceQuota =
        serde_json::from_value(json!({"metadata": {"name": "eight"}, "spec": {"hard": {"pods": "8"}}}))?;
    namespace.create(&quota).await?;
    let mut set = replica_set("web", 8);
    (set.spec.max_surge, set.spec.max_unavailable) = (Int(1), Int(1));
    namespace.create(&set).await?;
    let before = namespace.until_ready_pods(8).await;
    namespace.until_set_ready("web").await;

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"parameters": {"env.VERSION": "2"}}})).await?;
    // One after another, each of which has to end before the next one starts. A retry by the backoff alone takes 5 s each.
    let pace = Pace::start(&namespace).await?;
    let after = namespace
        .until_pods_within(4 * WAIT_TIMEOUT, "eight pods of the new version serve", |pods| {
            pods.len() == 8 && pods.iter().all(|pod| e2e::is_ready(pod) && has_version(pod, "2"))
        })
        .await;
    let took = pace.elapsed();
    ensure!(has(&[Need::RealNodes]) || took < Duration::from_secs(40), "{took:?} at the cluster's pace");
    assert!(uids(&before).is_disjoint(&uids(&after)));
    namespace.until_set_ready("web").await;
    Ok(())
}

/// Forbids the controller to delete a pod, and waits until the API server enforces it.
async fn forbid_to_delete(cluster: &Cluster, namespace: &Namespace, pod: &str) -> Result<()> {
    forbid_deletes_unless(cluster, namespace, &format!("request.name != '{pod}'"), pod).await
}

/// Forbids the controller to delete pods unless an expression is true, and waits until the API server enforces it for
/// one of them.
async fn forbid_deletes_unless(
    cluster: &Cluster,
    namespace: &Namespace,
    expression: &str,
    pod: &str,
) -> Result<()> {
    let user = REPLICA_SETS.user();
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]});
    forbid_unless(cluster, namespace, &user, rule, expression, "this one stays").await?;
    let delete =
        ["--namespace", &namespace.name, "delete", "pod", pod, "--dry-run=server", "--as", user.as_str()];
    eventually("the pod may not be deleted", WAIT_TIMEOUT, async || match kubectl(&delete).await {
        Err(refused) if format!("{refused:#}").contains("this one stays") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn a_pod_that_may_not_be_deleted_stops_neither_other_deletes_nor_creates() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("stays").await?;
    let pods = with_pods(&namespace, 6).await?;
    let stays = pods[0].name_any();
    // It is the first candidate for deletion.
    let cheap = json!({"metadata": {"annotations": {keys::POD_DELETION_COST: "-100"}}});
    namespace.merge::<Pod>(&stays, cheap).await?;
    forbid_to_delete(&cluster, &namespace, &stays).await?;

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"replicas": 3}})).await?;
    let left = namespace
        .until_pods("all that may go are gone", |pods| pods.len() == 4 && names(pods).contains(&stays))
        .await;
    let told = namespace
        .until("web", "names the pod and who refuses", |set: &BasicReplicaSet| {
            let blocker = set.status.as_ref().and_then(|status| status.blocked_by.as_ref());
            blocker.is_some_and(|blocker| {
                blocker.message.contains(&stays) && blocker.message.contains("this one stays")
            })
        })
        .await;
    let conditions = told.status.context("status")?.conditions;
    assert!(condition(&conditions, "Ready").is_some_and(|ready| ready.status == "False"), "{conditions:?}");

    for pod in left.iter().filter(|pod| pod.name_any() != stays) {
        namespace.delete::<Pod>(&pod.name_any()).await?;
    }
    let now = namespace.until_ready_pods(3).await;
    assert!(names(&now).contains(&stays));
    namespace.until_set_ready("web").await;

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"parameters": {"env.VERSION": "2"}}})).await?;
    namespace
        .until_pods("three new ones serve beside it", |pods| {
            let new = pods.iter().filter(|pod| e2e::is_ready(pod) && has_version(pod, "2"));
            pods.len() == 4 && new.count() == 3
        })
        .await;
    Ok(())
}

#[tokio::test]
async fn pods_that_may_not_be_deleted_are_bounded_over_many_templates_and_go_once_they_may() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("all-stay").await?;
    let pods = with_pods(&namespace, 4).await?;
    forbid_deletes_unless(&cluster, &namespace, "false", &pods[0].name_any()).await?;

    // At most twice the replicas and the surge.
    for (version, total) in [("2", 8), ("3", 9), ("4", 9)] {
        let edit = json!({"spec": {"parameters": {"env.VERSION": version}}});
        let edited = namespace.merge::<BasicReplicaSet>("web", edit).await?;
        let told = |set: &BasicReplicaSet| {
            let status = set.status.as_ref();
            let blocker = status.and_then(|status| status.blocked_by.as_ref());
            status.and_then(|status| status.observed_generation) >= edited.metadata.generation
                && blocker.is_some_and(|blocker| blocker.message.contains("this one stays"))
        };
        namespace.until("web", "names a pod that may not be deleted", told).await;
        let pods = namespace.until_pods("no more pods come", |pods| pods.len() == total).await;
        assert!(pods.iter().all(|pod| pod.metadata.deletion_timestamp.is_none()));
    }

    permit(&cluster, &namespace, &REPLICA_SETS.user()).await?;
    namespace
        .until_pods_within(2 * WAIT_TIMEOUT, "four pods of the last version serve", |pods| {
            pods.len() == 4 && pods.iter().all(|pod| e2e::is_ready(pod) && has_version(pod, "4"))
        })
        .await;
    namespace.until_set_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn a_write_that_is_undone_again_and_again_is_slowed_down_and_told() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("fight").await?;
    let pod = with_pods(&namespace, 1).await?.swap_remove(0).name_any();

    let strip = json!({"metadata": {"labels": {keys::REPLICA_SET_UID: null}}});
    let undo = async || loop {
        namespace.merge::<Pod>(&pod, strip.clone()).await?;
        sleep(Duration::from_millis(50)).await;
    };
    // It is told of writes that are more frequent than every two seconds: on a busy machine, hardly.
    let told = namespace.until_event_within(3 * WAIT_TIMEOUT, "web", "RepeatedWrites");
    let note = select! {
        note = told => note,
        failed = undo() => return failed,
    };
    assert!(note.contains(&pod), "{note}");
    // It is not given up.
    namespace.until_set_ready("web").await;
    Ok(())
}
