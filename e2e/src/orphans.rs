//! Objects that lose their owner, but not their life.

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, PostParams},
    discovery::ApiResource,
};
use serde_json::json;

use crate::{Namespace, WAIT_TIMEOUT, eventually, image, replica_set};

/// Waits until the garbage collector knows `BasicReplicaSets`, and returns a deleted one.
///
/// It discovers new kinds twice a minute. Before that, it orphans no dependents of a kind, and
/// collects them later.
pub async fn until_the_garbage_collector_knows_sets(namespace: &Namespace) -> Result<BasicReplicaSet> {
    let probe = namespace.create(&replica_set("probe", 0)).await?;
    namespace.api::<BasicReplicaSet>().delete("probe", &DeleteParams::orphan()).await?;
    let is_gone = async || match namespace.api::<BasicReplicaSet>().get_opt("probe").await {
        Ok(None) => Ok(()),
        other => Err(other),
    };
    eventually("the garbage collector knows BasicReplicaSets", 2 * WAIT_TIMEOUT, is_gone).await;
    Ok(probe)
}

/// Deletes a set, and orphans its pods.
///
/// The garbage collector orphans only dependents that it has seen, and lags when the cluster is busy. It sees pods in
/// their order: a later pod whose owner is gone is collected only after it has seen them.
pub async fn orphan_pods(namespace: &Namespace, gone: &BasicReplicaSet) -> Result<()> {
    let security = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let garbage: Pod = serde_json::from_value(json!({
        "metadata": {"name": "garbage", "ownerReferences": [gone.owner_ref(&())]},
        "spec": {
            "schedulerName": "none",
            "containers": [{"name": "main", "image": image(), "securityContext": security}],
        },
    }))?;
    namespace.create(&garbage).await?;
    namespace.until_gone::<Pod>("garbage").await;
    namespace.api::<BasicReplicaSet>().delete("web", &DeleteParams::orphan()).await?;
    Ok(())
}

/// Deletes a deployment, and orphans its child, which the garbage collector has to see like the pods.
pub async fn orphan_child(namespace: &Namespace, gone: &BasicReplicaSet) -> Result<()> {
    let mut garbage = replica_set("garbage", 0);
    garbage.metadata.owner_references = Some(gone.owner_ref(&()).into_iter().collect());
    namespace.create(&garbage).await?;
    namespace.until_gone::<BasicReplicaSet>("garbage").await;
    namespace.api::<BasicDeployment>().delete("web", &DeleteParams::orphan()).await?;
    Ok(())
}

/// Deletes a deployment, and orphans its child of any kind. Returns the child as it was before.
///
/// An object of the same kind is collected before that: the garbage collector discovers new kinds twice a minute, and orphans only
/// dependents that it has seen.
pub async fn orphan_any_child(namespace: &Namespace, kind: &ApiResource) -> Result<DynamicObject> {
    let web = namespace.api::<BasicDeployment>().get("web").await?;
    let child = web.status.and_then(|status| status.child).context("it has no child")?;
    let children = namespace.api_of(kind);
    let child = children.get(&child.name).await?;

    let mut garbage = DynamicObject::new("garbage", kind).data(json!({"spec": child.data["spec"]}));
    garbage.data["spec"]["replicas"] = 0.into();
    let mut gone = child.owner_references().first().context("it has no owner")?.clone();
    gone.name = "gone".into();
    gone.uid = "00000000-0000-4000-8000-000000000000".into();
    garbage.owner_references_mut().push(gone);
    children.create(&PostParams::default(), &garbage).await?;
    eventually("the garbage collector knows the kind", 2 * WAIT_TIMEOUT, async || {
        match children.get_opt("garbage").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    namespace.api::<BasicDeployment>().delete("web", &DeleteParams::orphan()).await?;
    namespace.until_gone::<BasicDeployment>("web").await;
    Ok(child)
}
