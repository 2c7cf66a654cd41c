//! An exchange of children that somebody disturbs keeps enough replicas serving, and does not report its end while former replicas
//! serve, or run on. One that never ends leaves nothing behind.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use catena_api::BasicReplicaSet;
use e2e::{
    CHAIN, Cluster, DEPLOYMENTS, Namespace, Need, Recording, Release, WAIT_TIMEOUT, another_image, condition,
    deployment, eventually, has, is_alive, is_ready, names, uids,
};
use k8s_openapi::{
    api::{
        apps::v1::{ControllerRevision, Deployment, ReplicaSet},
        core::v1::Pod,
    },
    apimachinery::pkg::util::intstr::IntOrString::Int,
};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;

use crate::exchanges_children::{change, until_on, values, web};

/// Nobody can pull it.
const MISSING: &str = "registry.invalid/missing:1";
/// Somebody's finalizer.
const HOLD: &str = "e2e.catena.dev/hold";

async fn until_serving(namespace: &Namespace, least: usize) -> Vec<Pod> {
    let serve = |pods: &[Pod]| pods.iter().filter(|pod| is_alive(pod) && is_ready(pod)).count() >= least;
    namespace.until_pods(&format!("{least} pods serve"), serve).await
}

/// Beside a new child that never serves, somebody scales the former one to nothing, again and again.
async fn former_child_is_raised_again(namespace: &Namespace) -> Result<()> {
    namespace.create(&web()).await?;
    namespace.until_ready("web").await;
    change(namespace, json!({"template": "deployment", "parameters": {"image": MISSING}})).await?;
    namespace.until("web", "has its share", |child: &Deployment| child.spec.replicas == Some(2)).await;
    for _ in 0..2 {
        namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"replicas": 0}})).await?;
        namespace.until("web", "is raised again", |child: &BasicReplicaSet| child.spec.replicas == 3).await;
    }
    until_serving(namespace, 3).await;
    change(namespace, json!({"parameters": {"image": another_image()}})).await?;
    until_on::<Deployment>(namespace, &["BasicReplicaSet"]).await
}

/// A finalizer keeps the former child, but not its pods.
async fn ready_is_reported_beside_no_former_pod(namespace: &Namespace) -> Result<()> {
    let mut held = deployment("held", 3);
    held.spec.template = "default".into();
    namespace.create(&held).await?;
    namespace.until_ready("held").await;
    let former = uids(&namespace.until_ready_pods(3).await);
    namespace.merge::<BasicReplicaSet>("held", json!({"metadata": {"finalizers": [HOLD]}})).await?;
    let spec = json!({"spec": {"template": "deployment"}});
    namespace.merge::<catena_api::BasicDeployment>("held", spec).await?;
    namespace
        .until("held", "serves through a Deployment", |held: &catena_api::BasicDeployment| {
            held.status.as_ref().is_some_and(|status| {
                status.ready && status.child.as_ref().is_some_and(|child| child.kind == "Deployment")
            })
        })
        .await;
    let pods = namespace.api::<Pod>().list(&ListParams::default()).await?.items;
    let left: Vec<_> =
        pods.iter().filter(|pod| is_alive(pod) && former.contains(&pod.uid().unwrap_or_default())).collect();
    assert!(left.is_empty(), "ready beside {left:?}");
    let kept = namespace.api::<BasicReplicaSet>().get("held").await?;
    assert!(kept.metadata.deletion_timestamp.is_some(), "{kept:?}");
    namespace.merge::<BasicReplicaSet>("held", json!({"metadata": {"finalizers": null}})).await?;
    namespace.until_collected::<BasicReplicaSet>("held").await;
    Ok(())
}

/// Each version is another ReplicaSet.
async fn versions_that_never_serve_leave_nothing_behind(namespace: &Namespace) -> Result<()> {
    let mut web = web();
    (web.spec.template, web.spec.revision_history_limit) = ("replicaset".into(), 1);
    namespace.create(&web).await?;
    let first = namespace.until_ready("web").await.status.and_then(|status| status.child);
    for version in 1..=6 {
        change(namespace, json!({"parameters": {"image": format!("{MISSING}-{version}")}})).await?;
        let changed = namespace
            .until("web", "has a child of this version", |web: &catena_api::BasicDeployment| {
                let status = web.status.as_ref();
                status.is_some_and(|status| status.revision == Some(i64::from(version) + 1))
            })
            .await;
        let child = changed.status.and_then(|status| status.child).context("a child")?;
        namespace.until(&child.name, "has a replica", |set: &ReplicaSet| replicas_of(set) > 0).await;
    }
    let few = async || {
        let sets = namespace.api::<ReplicaSet>().list(&ListParams::default()).await;
        let sets = sets.map_err(|error| vec![error.to_string()])?.items;
        let revisions = namespace.api::<ControllerRevision>().list(&ListParams::default()).await;
        let revisions = revisions.map_err(|error| vec![error.to_string()])?.items;
        // Between what has to serve and what may be there is room for two that do not.
        let is_few = sets.len() <= 3 && revisions.len() <= 4 && sets.iter().all(|set| replicas_of(set) > 0);
        if is_few { Ok(sets) } else { Err(sets.iter().map(ResourceExt::name_any).collect::<Vec<_>>()) }
    };
    let left = eventually("no empty ReplicaSet is left", WAIT_TIMEOUT, few).await;
    let first = first.context("a child")?.name;
    assert!(left.iter().any(|set| set.name_any() == first && replicas_of(set) >= 3), "{first}: {left:?}");
    until_serving(namespace, 3).await;
    Ok(())
}

/// A replica of the new version is ready for a moment, and then crashes. The children are told for how long it has to be ready,
/// and no longer when nobody asks for that.
async fn what_crashes_soon_replaces_nobody(namespace: &Namespace) -> Result<()> {
    namespace.create(&web()).await?;
    namespace.until_ready("web").await;
    let old = uids(&namespace.until_ready_pods(4).await);
    let recording = Recording::start(namespace).await;
    change(namespace, json!({"template": "deployment", "minReadySeconds": 500})).await?;
    let is_new = |pod: &&Pod| !old.contains(&pod.uid().unwrap_or_default()) && is_ready(pod);
    let pods = namespace.until_pods("a new pod is ready", |pods| pods.iter().any(|pod| is_new(&pod))).await;
    let crash = json!({"metadata": {"annotations": {"catena.dev/play": "crash-loop"}}});
    let new = pods.iter().find(is_new).context("a new pod")?;
    namespace.merge::<Pod>(&new.name_any(), crash).await?;
    namespace
        .until("web", "names a pod that crashes", |web: &catena_api::BasicDeployment| {
            let blocker = web.status.as_ref().and_then(|status| status.blocked_by.as_ref());
            blocker.is_some_and(|blocker| blocker.reason == "CrashLoopBackOff")
        })
        .await;
    let child = namespace.api::<BasicReplicaSet>().get("web").await?;
    assert_eq!((child.spec.replicas, child.spec.min_ready_seconds), (4, 500));
    assert_eq!(recording.so_far().fewest_ready, 4);

    change(namespace, json!({"template": "default", "minReadySeconds": null})).await?;
    until_on::<BasicReplicaSet>(namespace, &["Deployment"]).await?;
    let child = namespace.api::<BasicReplicaSet>().get("web").await?;
    assert_eq!(child.spec.min_ready_seconds, 0, "nobody asks for it any more");
    Ok(())
}

/// A finalizer keeps the only pod of the former child, and there is no room for a second one.
async fn old_and_new_never_run_at_once(namespace: &Namespace) -> Result<()> {
    let mut one = deployment("web", 1);
    (one.spec.max_surge, one.spec.max_unavailable) = (Int(0), Int(1));
    namespace.create(&one).await?;
    namespace.until_ready("web").await;
    let held = namespace.until_ready_pods(1).await[0].name_any();
    namespace.merge::<Pod>(&held, json!({"metadata": {"finalizers": [HOLD]}})).await?;
    let spec = json!({"template": "deployment", "podReplacementPolicy": "TerminationComplete"});
    change(namespace, spec).await?;
    namespace
        .until("web", "waits for its end", |web: &catena_api::BasicDeployment| {
            let status = web.status.as_ref();
            let ready = status.and_then(|status| condition(&status.conditions, "Ready"));
            let why = "waits for the end of 1 of the replicas of BasicReplicaSet \"web\"";
            ready.is_some_and(|ready| ready.status == "False" && ready.message.contains(why))
        })
        .await;
    assert_eq!(names(&namespace.pods().await?), BTreeSet::from([held.clone()]));
    assert_eq!(namespace.api::<Deployment>().get("web").await?.spec.replicas, Some(0));
    namespace.merge::<Pod>(&held, json!({"metadata": {"finalizers": null}})).await?;
    until_on::<Deployment>(namespace, &["BasicReplicaSet"]).await
}

fn replicas_of(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or_default()
}

mod long {
    use super::*;

    #[tokio::test]
    async fn somebody_who_scales_or_keeps_a_former_child_neither_ends_its_service_nor_hides_it() -> Result<()>
    {
        let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
        let release =
            Release::upgrade(&cluster, DEPLOYMENTS, &values(&["deployment", "replicaset"], &[])?).await?;
        DEPLOYMENTS.until_ready(&cluster).await;
        versions_that_never_serve_leave_nothing_behind(&cluster.namespace("versions").await?).await?;
        former_child_is_raised_again(&cluster.namespace("scaled").await?).await?;
        ready_is_reported_beside_no_former_pod(&cluster.namespace("held").await?).await?;
        old_and_new_never_run_at_once(&cluster.namespace("apart").await?).await?;
        if has(&[Need::FakeNodes]) {
            what_crashes_soon_replaces_nobody(&cluster.namespace("crashes").await?).await?;
        }
        release.restore().await?;
        DEPLOYMENTS.until_ready(&cluster).await;
        Ok(())
    }
}
