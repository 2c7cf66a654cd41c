//! What somebody breaks is mended.

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicReplicaSet, keys};
use e2e::{AuditLog, CHAIN, Cluster, Namespace, REPLICA_SETS, deployment, uids};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::util::intstr::IntOrString};
use kube::ResourceExt;
use serde_json::json;

async fn with_three_pods(namespace: &Namespace) -> Result<Vec<Pod>> {
    namespace.create(&deployment("web", 3)).await?;
    namespace.until_ready("web").await;
    Ok(namespace.until_ready_pods(3).await)
}

#[tokio::test]
async fn a_deleted_pod_is_replaced_and_the_others_stay() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("pod").await?;
    let pods = with_three_pods(&namespace).await?;

    namespace.delete::<Pod>(&pods[1].name_any()).await?;
    let mut staying = uids(&pods);
    staying.remove(&pods[1].uid().context("uid")?);
    namespace
        .until_pods("three pods serve, two of them the ones that were not deleted", |now| {
            now.len() == 3 && now.iter().all(e2e::is_ready) && {
                let now = uids(now);
                now.is_superset(&staying) && now.intersection(&uids(&pods)).count() == 2
            }
        })
        .await;
    namespace.until_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn a_deleted_child_is_created_again_with_its_pods() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("child").await?;
    let before = with_three_pods(&namespace).await?;
    let child = namespace.until_set_ready("web").await;

    namespace.delete::<BasicReplicaSet>("web").await?;
    namespace
        .until("web", "runs another child and is ready", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| {
                status.ready
                    && status.child.as_ref().is_some_and(|now| Some(&now.uid) != child.uid().as_ref())
            })
        })
        .await;
    let after = namespace.until_ready_pods(3).await;
    assert!(uids(&before).is_disjoint(&uids(&after)), "the old pods went with their owner");
    Ok(())
}

#[tokio::test]
async fn what_the_template_says_about_the_child_is_restored_and_the_rest_is_left() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("edit").await?;
    with_three_pods(&namespace).await?;

    let edit = json!({"spec": {"parameters": {"image": "registry.invalid/missing:1"}, "maxSurge": 2}});
    namespace.merge::<BasicReplicaSet>("web", edit).await?;
    let image = |set: &BasicReplicaSet| set.spec.parameters.get("image").cloned();
    let original = deployment("web", 3).spec.parameters.get("image").cloned();
    let set = namespace
        .until("web", "has the image of the BasicDeployment again", |set| image(set) == original)
        .await;
    assert_eq!(set.spec.max_surge, IntOrString::Int(2), "the template does not speak of it");

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"replicas": 5}})).await?;
    let set = namespace
        .until("web", "has the replicas of the BasicDeployment again", |set: &BasicReplicaSet| {
            set.spec.replicas == 3
        })
        .await;
    assert_eq!(set.spec.max_surge, IntOrString::Int(2));
    namespace.until_ready("web").await;
    namespace.until_ready_pods(3).await;
    Ok(())
}

#[tokio::test]
async fn a_child_without_our_label_is_found_and_labelled_again() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("label").await?;
    let pods = with_three_pods(&namespace).await?;
    let child = namespace.until_set_ready("web").await;

    let edit = json!({"metadata": {"labels": {keys::DEPLOYMENT_UID: null}}});
    namespace.merge::<BasicReplicaSet>("web", edit).await?;
    let healed = namespace
        .until("web", "has the label again", |set: &BasicReplicaSet| {
            set.labels().contains_key(keys::DEPLOYMENT_UID)
        })
        .await;
    assert_eq!(healed.uid(), child.uid(), "it is the same child");
    namespace.until_ready("web").await;
    assert_eq!(uids(&namespace.until_ready_pods(3).await), uids(&pods));
    Ok(())
}

#[tokio::test]
async fn a_child_without_our_hash_gets_it_again_and_keeps_its_pods() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("hash").await?;
    let pods = with_three_pods(&namespace).await?;
    let child = namespace.until_set_ready("web").await;

    let edit = json!({"metadata": {"annotations": {keys::HASH: null}}});
    namespace.merge::<BasicReplicaSet>("web", edit).await?;
    let healed = namespace
        .until("web", "has the hash again", |set: &BasicReplicaSet| {
            set.annotations().contains_key(keys::HASH)
        })
        .await;
    assert_eq!(healed.annotations()[keys::HASH], child.annotations()[keys::HASH]);
    namespace.until_ready("web").await;
    assert_eq!(uids(&namespace.until_ready_pods(3).await), uids(&pods));
    Ok(())
}

#[tokio::test]
async fn a_pod_without_our_label_is_labelled_again_and_no_other_is_made() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("strip").await?;
    let pods = with_three_pods(&namespace).await?;
    let log = AuditLog::from_now()?;

    let name = pods[0].name_any();
    let edit = json!({"metadata": {"labels": {keys::REPLICA_SET_UID: null}}});
    namespace.merge::<Pod>(&name, edit).await?;
    namespace
        .until(&name, "has the label again", |pod: &Pod| pod.labels().contains_key(keys::REPLICA_SET_UID))
        .await;
    namespace.until_ready("web").await;
    assert_eq!(uids(&namespace.until_ready_pods(3).await), uids(&pods));
    let requests = log.by(REPLICA_SETS, &namespace.name)?;
    let created = requests.iter().filter(|request| request.is("create", "pods") && request.code == 201);
    assert_eq!(created.count(), 0, "{requests:#?}");
    Ok(())
}
