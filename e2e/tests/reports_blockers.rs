//! A BasicDeployment reports the object that keeps it from being ready, and the reason.

use std::time::Duration;

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BlockedBy};
use e2e::{
    CHAIN, Cluster, Namespace, WAIT_TIMEOUT, condition, deployment, eventually, is_ready, is_true, kubectl,
    names,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

/// Time limit for naming a blocker, at the pace of the cluster.
const SOON: Duration = Duration::from_secs(10);

/// Whether a pod itself shows this trouble.
fn shows(pod: &Pod, reason: &str) -> bool {
    let status = pod.status.as_ref();
    let waits =
        status.into_iter().flat_map(|status| status.container_statuses.iter().flatten()).any(|container| {
            let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
            waiting.and_then(|waiting| waiting.reason.as_deref()) == Some(reason)
        });
    let is_so = status
        .into_iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.status == "False" && condition.reason.as_deref() == Some(reason));
    waits || is_so
}

/// Waits until a pod with this trouble is named as the blocker, and checks that it is one of the pods.
async fn until_blocked(namespace: &Namespace, reason: &str) -> Result<BlockedBy> {
    namespace.until_pods("show it", |pods| pods.iter().any(|pod| shows(pod, reason))).await;
    let what = format!("names a pod that is {reason}");
    let names = |web: &BasicDeployment| names_a_pod(web, reason);
    let web = namespace.until_soon(SOON, "web", &what, names).await?;
    Ok(named(namespace, web, reason).await?.0)
}

fn names_a_pod(web: &BasicDeployment, reason: &str) -> bool {
    let blocker = web.status.as_ref().and_then(|status| status.blocked_by.as_ref());
    blocker.is_some_and(|blocker| blocker.kind == "Pod" && blocker.reason == reason)
}

/// The blocker, which is to be one of the pods, and the progress that is reported with it.
async fn named(namespace: &Namespace, web: BasicDeployment, reason: &str) -> Result<(BlockedBy, String)> {
    let status = web.status.context("status")?;
    let blocker = status.blocked_by.context("blockedBy")?;
    assert!(names(&namespace.pods().await?).contains(&blocker.name), "{blocker:?}");
    assert!(blocker.since.is_some(), "{blocker:?}");
    let ready = condition(&status.conditions, "Ready").context("Ready")?;
    assert!(ready.message.contains(&blocker.name) && ready.message.contains(reason), "{}", ready.message);
    Ok((blocker, status.progress))
}

async fn until_unblocked(namespace: &Namespace) {
    let web = namespace.until_ready("web").await;
    assert_eq!(web.status.and_then(|status| status.blocked_by), None);
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_named_until_it_is_mended() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("image").await?;
    let mut web = deployment("web", 3);
    let image = web.spec.parameters.insert("image".into(), "registry.invalid/missing:1".into());
    namespace.create(&web).await?;

    let blocker = until_blocked(&namespace, "ImagePullBackOff").await?;
    assert!(blocker.message.contains("registry.invalid/missing:1"), "{}", blocker.message);
    let table = kubectl(&["--namespace", &namespace.name, "get", "basicdeployment", "web"]).await?;
    let header: Vec<_> = table.lines().next().unwrap_or_default().split_whitespace().collect();
    let row: Vec<_> = table.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(header[..5], ["NAME", "READY", "SERVING", "BLOCKED-BY", "REASON"], "{table}");
    assert_eq!(row[..5], ["web", "false", "0/3", &blocker.name, "ImagePullBackOff"], "{table}");
    let all = kubectl(&["get", "basicdeployments", "--all-namespaces", "--output=wide"]).await?;
    let header: Vec<_> = all.lines().next().unwrap_or_default().split_whitespace().collect();
    let row = all.lines().find(|line| line.starts_with(&namespace.name));
    let row: Vec<_> = row.unwrap_or_default().split_whitespace().collect();
    assert_eq!(header[..6], ["NAMESPACE", "NAME", "READY", "SERVING", "BLOCKED-BY", "REASON"], "{all}");
    assert_eq!(header[6..9], ["TEMPLATE", "REVISION", "NEXT-RETRY"], "{all}");
    assert_eq!(row[..5], [namespace.name.as_str(), "web", "false", "0/3", &blocker.name], "{all}");

    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"image": image}}})).await?;
    until_unblocked(&namespace).await;
    Ok(())
}

#[tokio::test]
async fn a_pod_that_no_node_can_take_is_named_until_it_asks_for_less() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("cpu").await?;
    let mut web = deployment("web", 2);
    web.spec.parameters.insert("cpu".into(), "100000".into());
    namespace.create(&web).await?;

    let blocker = until_blocked(&namespace, "Unschedulable").await?;
    assert!(blocker.message.contains("Insufficient cpu"), "{}", blocker.message);
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"cpu": null}}})).await?;
    until_unblocked(&namespace).await;
    Ok(())
}

#[tokio::test]
async fn a_pod_that_crashes_again_and_again_is_named_until_it_is_replaced() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("crash").await?;
    namespace.create(&deployment("web", 3)).await?;
    namespace.until_ready("web").await;
    let victim = namespace.until_ready_pods(3).await.swap_remove(1).name_any();

    // The status as a kubelet writes it.
    let waiting =
        json!({"reason": "CrashLoopBackOff", "message": "back-off 2m40s restarting failed container=main"});
    let crash_loop = json!({"status": {
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
        "containerStatuses": [{
            "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 5, "state": {"waiting": waiting},
        }],
    }});
    let pods = namespace.api::<Pod>();
    // Again and again, and read together: a kubelet that syncs the pod overwrites its status.
    let web = eventually("the pod is named", WAIT_TIMEOUT, async || {
        let params = PatchParams::default();
        let written = pods.patch_status(&victim, &params, &Patch::Strategic(&crash_loop)).await;
        written.map_err(|error| error.to_string())?;
        let web = namespace.api::<BasicDeployment>().get("web").await.map_err(|error| error.to_string())?;
        if names_a_pod(&web, "CrashLoopBackOff") { Ok(web) } else { Err(e2e::yaml(&web)) }
    })
    .await;
    let (blocker, progress) = named(&namespace, web, "CrashLoopBackOff").await?;
    assert_eq!((blocker.name, progress.as_str()), (victim.clone(), "2/3"));

    namespace.delete::<Pod>(&victim).await?;
    until_unblocked(&namespace).await;
    Ok(())
}

#[tokio::test]
async fn a_pod_that_ended_is_named_until_its_successor_serves() -> Result<()> {
    e2e::needs!(FakeNodes);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("ended").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    let ended = namespace.until_ready_pods(1).await.swap_remove(0);
    // No successor will count as serving.
    let serves_after = async |seconds| {
        namespace.merge::<BasicDeployment>("web", json!({"spec": {"minReadySeconds": seconds}})).await
    };
    serves_after(300).await?;

    let evicted = json!({"status": {
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
        "conditions": [{"type": "Ready", "status": "False"}],
    }});
    let (pods, params) = (namespace.api::<Pod>(), PatchParams::default());
    pods.patch_status(&ended.name_any(), &params, &Patch::Strategic(&evicted)).await?;
    let is_replaced = |pods: &[Pod]| pods.len() == 1 && pods[0].uid() != ended.uid() && is_ready(&pods[0]);
    namespace.until_pods("the successor is ready", is_replaced).await;
    let names = |web: &BasicDeployment| {
        let conditions = web.status.as_ref().map(|status| &*status.conditions).unwrap_or_default();
        let ready = condition(conditions, "Ready").map(|ready| &*ready.message).unwrap_or_default();
        names_a_pod(web, "Evicted") && ready.contains("ready for less than minReadySeconds")
    };
    namespace.until_soon(SOON, "web", "names the pod that ended beside its successor", names).await?;
    serves_after(0).await?;
    until_unblocked(&namespace).await;
    Ok(())
}

#[tokio::test]
async fn the_first_blocker_stays_the_same_while_it_blocks() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("same").await?;
    let mut web = deployment("web", 4);
    web.spec.parameters.insert("image".into(), "registry.invalid/missing:1".into());
    namespace.create(&web).await?;

    let before = until_blocked(&namespace, "ImagePullBackOff").await?;
    let other = names(&namespace.pods().await?).into_iter().find(|name| *name != before.name);
    namespace.delete::<Pod>(&other.context("no other pod")?).await?;
    namespace.until_pods("four pods are there again", |pods| pods.len() == 4).await;
    let after = until_blocked(&namespace, "ImagePullBackOff").await?;
    assert_eq!((after.name, after.since), (before.name, before.since));
    Ok(())
}

#[tokio::test]
async fn a_rollout_that_does_not_move_is_reported_when_its_deadline_passes() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("deadline").await?;
    let mut web = deployment("web", 1);
    web.spec.progress_deadline_seconds = 3;
    let image = web.spec.parameters.insert("image".into(), "registry.invalid/missing:1".into());
    namespace.create(&web).await?;

    let web = namespace
        .until("web", "says that the deadline passed, and why", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| {
                let progressing = condition(&status.conditions, "Progressing");
                let stalled = condition(&status.conditions, "Stalled");
                progressing
                    .is_some_and(|said| said.status == "False" && said.reason == "ProgressDeadlineExceeded")
                    // A kubelet reports ErrImagePull at each try, and ImagePullBackOff between two; a busy one reports late.
                    && stalled.is_some_and(|stalled| {
                        let why = ["ImagePullBackOff", "ErrImagePull"];
                        stalled.status == "True" && why.iter().any(|reason| stalled.message.contains(reason))
                    })
            })
        })
        .await;
    let conditions = web.status.context("status")?.conditions;
    assert!(!is_true(&conditions, "Reconciling"), "{conditions:?}");

    // It is not given up.
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"image": image}}})).await?;
    let web = namespace.until_ready("web").await;
    let conditions = web.status.context("status")?.conditions;
    assert!(is_true(&conditions, "Progressing") && condition(&conditions, "Stalled").is_none());
    Ok(())
}

#[tokio::test]
async fn a_quota_that_asks_for_a_limit_is_told_as_a_quota() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("quota").await?;
    namespace.limit("limits", json!({"limits.cpu": "10"})).await?;
    namespace.create(&deployment("web", 1)).await?;

    let says = |web: &BasicDeployment| {
        let blocker = web.status.as_ref().and_then(|status| status.blocked_by.as_ref());
        blocker.is_some_and(|blocker| {
            blocker.reason == "QuotaRefused" && blocker.message.contains("must specify limits.cpu")
        })
    };
    let web = namespace.until("web", "says what the quota asks for", says).await;
    let blocker = web.status.context("status")?.blocked_by.context("blockedBy")?;
    assert!(!blocker.message.contains("permission"), "{}", blocker.message);
    Ok(())
}
