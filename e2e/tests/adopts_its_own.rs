//! Pods, children and revisions that lost their owner are adopted again if they were made from the same rendering; no others ever are.

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicDeploymentRollback, BasicReplicaSet, keys};
use e2e::{
    AuditLog, CHAIN, COMMANDED, Cluster, Namespace, REPLICA_SETS, another_image, commands, condition,
    deployment, image, inject_sidecar, kubectl, orphan_child, orphan_pods, replica_set, uids,
    until_the_garbage_collector_knows_sets,
};
use k8s_openapi::api::{apps::v1::ControllerRevision, core::v1::Pod};
use kube::{
    Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

const COPY: &str = "dbg";

/// Waits until this number of pods belongs to the set and serves, and returns all existing ones.
async fn until_own(namespace: &Namespace, count: usize) -> Vec<Pod> {
    let what = format!("{count} pods of the set serve");
    let is_own = |pod: &&Pod| !pod.owner_references().is_empty();
    namespace
        .until_pods(&what, |pods| {
            let own: Vec<_> = pods.iter().filter(is_own).collect();
            own.len() == count && own.iter().all(|pod| e2e::is_ready(pod) && runs(pod, &image()))
        })
        .await
}

fn runs(pod: &Pod, image: &str) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers.into_iter().all(|container| container.image.as_deref() == Some(image))
}

async fn scale(namespace: &Namespace, replicas: i32) -> Result<BasicReplicaSet> {
    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"replicas": replicas}})).await?;
    Ok(namespace.until_set_ready("web").await)
}

fn has_copy(pods: &[Pod]) -> bool {
    pods.iter().any(|pod| pod.name_any() == COPY && pod.owner_references().is_empty())
}

fn pods_created(log: &AuditLog, namespace: &Namespace) -> Result<usize> {
    let requests = log.by(REPLICA_SETS, &namespace.name)?;
    Ok(requests.iter().filter(|request| request.is("create", "pods") && request.code == 201).count())
}

async fn with_three_pods(namespace: &Namespace) -> Result<Vec<Pod>> {
    namespace.create(&deployment("web", 3)).await?;
    namespace.until_ready("web").await;
    Ok(namespace.until_ready_pods(3).await)
}

#[tokio::test]
async fn a_deployment_that_comes_back_takes_its_orphans_back() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("orphan").await?;
    let gone = until_the_garbage_collector_knows_sets(&namespace).await?;
    let log = AuditLog::from_now()?;
    let before = with_three_pods(&namespace).await?;
    let child = namespace.until_set_ready("web").await;

    orphan_child(&namespace, &gone).await?;
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
async fn a_deployment_that_comes_back_takes_its_history_back() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("history").await?;
    let gone = until_the_garbage_collector_knows_sets(&namespace).await?;
    with_three_pods(&namespace).await?;
    let patch = json!({"spec": {"parameters": {"image": another_image()}}});
    let changed = namespace.merge::<BasicDeployment>("web", patch).await?;
    let is_on_second = |web: &BasicDeployment| {
        web.status.as_ref().is_some_and(|status| status.ready && status.revision == Some(2))
    };
    namespace.until("web", "is on its second revision", is_on_second).await;
    orphan_child(&namespace, &gone).await?;
    namespace.until_gone::<BasicDeployment>("web").await;

    namespace.create(&BasicDeployment::new("web", changed.spec)).await?;
    let web = namespace.until_ready("web").await;
    namespace.create(&commands::rollback(&web, "back", 0)).await?;
    commands::until_outcome::<BasicDeploymentRollback>(&namespace, "back", "True", "Complete").await;
    let child = namespace.until_set_ready("web").await;
    assert_eq!(child.spec.parameters.get("image"), Some(&image()));
    let revisions = namespace.api::<ControllerRevision>().list(&ListParams::default()).await?;
    assert!(revisions.items.len() >= 2, "{revisions:?}");
    for revision in &revisions {
        let owners: Vec<_> = revision.owner_references().iter().map(|owner| owner.uid.clone()).collect();
        assert_eq!(owners, [web.uid().context("uid")?], "{revision:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_set_that_comes_back_takes_its_orphans_back() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("orphans").await?;
    let gone = until_the_garbage_collector_knows_sets(&namespace).await?;
    let log = AuditLog::from_now()?;
    let before = with_three_pods(&namespace).await?;
    let child = namespace.until_set_ready("web").await;

    // The BasicDeployment creates another one at once.
    orphan_pods(&namespace, &gone).await?;
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
async fn a_copy_for_debugging_is_never_adopted_counted_or_deleted() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("copy").await?;
    namespace.create(&replica_set("web", 2)).await?;
    let set = namespace.until_set_ready("web").await;
    let original = namespace.until_ready_pods(2).await.swap_remove(0).name_any();

    let (copy, other) = (format!("--copy-to={COPY}"), "--set-image=*=busybox:1");
    let debug = ["--namespace", &namespace.name, "debug", &original, &copy, other, "--attach=false"];
    kubectl(&debug).await?;
    // Some versions of kubectl omit labels by default.
    let label = json!({"metadata": {"labels": {keys::REPLICA_SET_UID: set.uid()}}});
    namespace.merge::<Pod>(COPY, label).await?;

    let set = scale(&namespace, 3).await?;
    assert_eq!(set.status.map(|status| (status.active, status.replicas)), Some((3, 3)));
    assert!(has_copy(&until_own(&namespace, 3).await));
    namespace.delete::<Pod>(&original).await?;
    assert!(has_copy(&until_own(&namespace, 3).await));
    scale(&namespace, 1).await?;
    assert!(has_copy(&until_own(&namespace, 1).await));
    Ok(())
}

/// As by admission, which may rewrite images and inject containers.
#[tokio::test]
async fn an_orphan_whose_image_is_not_the_rendered_one_is_taken_back_like_its_brother() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("changed").await?;
    let gone = until_the_garbage_collector_knows_sets(&namespace).await?;
    namespace.create(&replica_set("web", 2)).await?;
    namespace.until_set_ready("web").await;
    let pods = namespace.until_ready_pods(2).await;

    orphan_pods(&namespace, &gone).await?;
    namespace.until_gone::<BasicReplicaSet>("web").await;
    let rewritten = json!({"spec": {"containers": [{"name": "main", "image": another_image()}]}});
    let rewritten = Patch::Strategic(rewritten);
    namespace.api::<Pod>().patch(&pods[0].name_any(), &PatchParams::default(), &rewritten).await?;

    namespace.create(&replica_set("web", 2)).await?;
    namespace.until_set_ready("web").await;
    let after = namespace
        .until_pods("both pods have an owner again", |pods| {
            pods.iter().all(|pod| !pod.owner_references().is_empty())
        })
        .await;
    assert_eq!(uids(&after), uids(&pods));
    Ok(())
}

#[tokio::test]
async fn orphans_with_sidecars_other_images_or_a_debug_container_are_adopted_but_no_copy() -> Result<()> {
    e2e::needs!(FakeNodes);
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("injected").await?;
    let gone = until_the_garbage_collector_knows_sets(&namespace).await?;
    namespace.create(&replica_set("web", 5)).await?;
    namespace.until_set_ready("web").await;
    let pods = namespace.until_ready_pods(5).await;
    orphan_pods(&namespace, &gone).await?;
    namespace.until_gone::<BasicReplicaSet>("web").await;
    let are_orphans = |pods: &[Pod]| pods.iter().all(|pod| pod.owner_references().is_empty());
    namespace.until_pods("no pod has an owner", are_orphans).await;

    let names: Vec<_> = pods.iter().map(ResourceExt::name_any).collect();
    let digest = format!("{}@sha256:{}", image(), "0".repeat(64));
    for (name, image) in names.iter().zip(["mirror.example.com/pause:3.10", &digest]) {
        let image = Patch::Strategic(json!({"spec": {"containers": [{"name": "main", "image": image}]}}));
        namespace.api::<Pod>().patch(name, &PatchParams::default(), &image).await?;
    }
    let debug = ["--namespace", &namespace.name, "debug", &names[2], "--attach=false"];
    kubectl(&[&debug[..], &["--image=busybox:1", "--profile=restricted"]].concat()).await?;
    inject_sidecar(&namespace, &pods[3], false).await?;
    inject_sidecar(&namespace, &pods[4], true).await?;
    let (copy, other) = (format!("--copy-to={COPY}"), "--set-image=*=busybox:1");
    kubectl(&[&debug[..], &[copy.as_str(), other]].concat()).await?;
    // Some versions of kubectl omit them.
    let marks = json!({"metadata": {"labels": pods[2].labels(), "annotations": pods[2].annotations()}});
    namespace.merge::<Pod>(COPY, marks).await?;
    let before = namespace.until_ready_pods(6).await;

    namespace.create(&replica_set("web", 5)).await?;
    namespace.until_set_ready("web").await;
    let after = namespace
        .until_pods("all have an owner again, but for the copy", |pods| {
            pods.iter().all(|pod| pod.owner_references().is_empty() == (pod.name_any() == COPY))
        })
        .await;
    assert_eq!(uids(&after), uids(&before));
    Ok(())
}

#[tokio::test]
async fn an_orphaned_child_of_another_content_is_told_how_it_comes_back() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("told").await?;
    let gone = until_the_garbage_collector_knows_sets(&namespace).await?;
    let before = with_three_pods(&namespace).await?;
    orphan_child(&namespace, &gone).await?;
    namespace.until_gone::<BasicDeployment>("web").await;

    let mut other = deployment("web", 3);
    other.spec.parameters.insert("image".into(), another_image());
    namespace.create(&other).await?;
    let is_refused = |web: &BasicDeployment| {
        let ready = web.status.as_ref().and_then(|status| condition(&status.conditions, "Ready"));
        ready.is_some_and(|ready| {
            ready.reason == "ChildNotOwned" && ready.message.contains("adopted without downtime")
        })
    };
    namespace.until("web", "says how the child comes back", is_refused).await;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"image": image()}}})).await?;
    namespace.until_ready("web").await;
    assert_eq!(uids(&namespace.until_ready_pods(3).await), uids(&before));
    Ok(())
}
