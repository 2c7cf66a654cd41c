//! An exchange of children that somebody disturbs keeps enough replicas serving, and does not report its end while former replicas
//! serve.

use anyhow::Result;
use catena_api::BasicReplicaSet;
use e2e::{
    CHAIN, Cluster, DEPLOYMENTS, Namespace, Release, another_image, deployment, is_alive, is_ready, uids,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::ResourceExt;
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
    let pods = namespace.api::<Pod>().list(&kube::api::ListParams::default()).await?.items;
    let left: Vec<_> =
        pods.iter().filter(|pod| is_alive(pod) && former.contains(&pod.uid().unwrap_or_default())).collect();
    assert!(left.is_empty(), "ready beside {left:?}");
    let kept = namespace.api::<BasicReplicaSet>().get("held").await?;
    assert!(kept.metadata.deletion_timestamp.is_some(), "{kept:?}");
    namespace.merge::<BasicReplicaSet>("held", json!({"metadata": {"finalizers": null}})).await?;
    namespace.until_gone::<BasicReplicaSet>("held").await;
    Ok(())
}

#[tokio::test]
async fn somebody_who_scales_or_keeps_a_former_child_neither_ends_its_service_nor_hides_it() -> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values(&["deployment"], &[])?).await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    former_child_is_raised_again(&cluster.namespace("scaled").await?).await?;
    ready_is_reported_beside_no_former_pod(&cluster.namespace("held").await?).await?;
    release.restore().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    Ok(())
}
