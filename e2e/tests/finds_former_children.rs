//! A former child that is out of sight, because its label was removed or its kind is no longer listed, is left alone until it is seen
//! again.

use anyhow::Result;
use catena_api::{BasicDeployment, BasicReplicaSet, keys};
use e2e::{CHAIN, Cluster, DEPLOYMENTS, Namespace, Release, another_image, image};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use serde_json::json;

use crate::exchanges_children::{change, until_on, values, web};

/// Nobody can pull it.
const MISSING: &str = "registry.invalid/missing:1";

/// The exchange has begun, and cannot end.
async fn until_exchanging(namespace: &Namespace) -> BasicDeployment {
    namespace
        .until("web", "names its former child", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| !status.former_children.is_empty())
        })
        .await
}

#[tokio::test]
async fn a_former_child_that_is_out_of_sight_stays_until_it_is_seen_again() -> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values(&["deployment"], &[])?).await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    let namespace = cluster.namespace("hidden").await?;
    namespace.create(&web()).await?;
    namespace.until_ready("web").await;

    change(&namespace, json!({"template": "deployment", "parameters": {"image": MISSING}})).await?;
    let web = until_exchanging(&namespace).await;
    let label = |uid: Option<String>| json!({"metadata": {"labels": {keys::DEPLOYMENT_UID: uid}}});
    namespace.merge::<BasicReplicaSet>("web", label(None)).await?;
    change(&namespace, json!({"parameters": {"image": another_image()}})).await?;
    until_on::<Deployment>(&namespace, &[]).await?;
    assert!(namespace.api::<BasicReplicaSet>().get_opt("web").await?.is_some(), "nobody has deleted it");
    namespace.merge::<BasicReplicaSet>("web", label(web.uid())).await?;
    until_on::<Deployment>(&namespace, &["BasicReplicaSet"]).await?;

    change(&namespace, json!({"template": "default", "parameters": {"image": MISSING}})).await?;
    until_exchanging(&namespace).await;
    release.change(&values(&[], &[])?).await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    change(&namespace, json!({"parameters": {"image": image()}})).await?;
    until_on::<BasicReplicaSet>(&namespace, &[]).await?;
    assert!(namespace.api::<Deployment>().get_opt("web").await?.is_some(), "nobody has deleted it");
    release.change(&values(&["deployment"], &[])?).await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    until_on::<BasicReplicaSet>(&namespace, &["Deployment"]).await?;
    release.restore().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    Ok(())
}
