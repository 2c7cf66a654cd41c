//! Objects that lose their owner, but not their life.

use anyhow::Result;
use catena_api::{BasicDeployment, BasicReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt, api::DeleteParams};
use serde_json::json;

use crate::{
    Namespace, WAIT_TIMEOUT,
    eventually::{eventually, until_gone},
    image, is_ready, replica_set,
};

/// Waits until the garbage collector knows `BasicReplicaSets`, and returns a deleted one.
///
/// It discovers new kinds twice a minute. Before that, it orphans no dependents of a kind, and
/// collects them later.
pub async fn until_the_garbage_collector_knows_sets(namespace: &Namespace) -> Result<BasicReplicaSet> {
    let probe = namespace.create(&replica_set("probe", 0)).await?;
    namespace.api::<BasicReplicaSet>().delete("probe", &DeleteParams::orphan()).await?;
    let what = "the garbage collector knows BasicReplicaSets";
    until_gone(what, 2 * WAIT_TIMEOUT, namespace.api::<BasicReplicaSet>(), "probe").await;
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
    namespace.until_collected::<Pod>("garbage").await;
    namespace.api::<BasicReplicaSet>().delete("web", &DeleteParams::orphan()).await?;
    Ok(())
}

/// Replaces an orphan by the pod that it would be if admission had injected a sidecar when it was created.
pub async fn inject_sidecar(namespace: &Namespace, orphan: &Pod, is_native: bool) -> Result<()> {
    let mut spec = serde_json::to_value(&orphan.spec)?;
    // It is scheduled again.
    spec["nodeName"].take();
    let mut sidecar = spec["containers"][0].clone();
    sidecar["name"] = "sidecar".into();
    let place = if is_native { "initContainers" } else { "containers" };
    if is_native {
        sidecar["restartPolicy"] = "Always".into();
    }
    let mut containers = spec[place].as_array().cloned().unwrap_or_default();
    containers.push(sidecar);
    spec[place] = containers.into();
    let name = orphan.name_any();
    let injected: Pod = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": orphan.labels(), "annotations": orphan.annotations()},
        "spec": spec,
    }))?;
    namespace.delete::<Pod>(&name).await?;
    namespace.until_gone::<Pod>(&name).await;
    let pods = namespace.api::<Pod>();
    eventually("the injected pod serves", WAIT_TIMEOUT, async || match pods.get_opt(&name).await {
        Ok(Some(pod)) if is_ready(&pod) => Ok(()),
        // kwok deletes a terminating pod by its name, and now and then twice: then the new one is gone, too.
        Ok(None) => Err(format!("created: {:?}", namespace.create(&injected).await.map(drop))),
        seen => Err(format!("{seen:?}")),
    })
    .await;
    Ok(())
}

/// Deletes a deployment, and orphans its child, which the garbage collector has to see like the pods.
pub async fn orphan_child(namespace: &Namespace, gone: &BasicReplicaSet) -> Result<()> {
    let mut garbage = replica_set("garbage", 0);
    garbage.metadata.owner_references = Some(gone.owner_ref(&()).into_iter().collect());
    namespace.create(&garbage).await?;
    namespace.until_collected::<BasicReplicaSet>("garbage").await;
    namespace.api::<BasicDeployment>().delete("web", &DeleteParams::orphan()).await?;
    Ok(())
}
