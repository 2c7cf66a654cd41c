//! Waits until the API server's admission knows newly installed kinds.
//!
//! `OwnerReferencesPermissionEnforcement` looks an owner's kind up in a map that it renews every 30 s. Until then a
//! dependent with `blockOwnerDeletion` is refused, and controllers back off. Users who may set every finalizer, such as
//! an administrator, are not checked, so the request is made in the name of a controller.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use k8s_openapi::{
    api::core::v1::Pod, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use local_cluster::client_as;
use serde_json::json;
use tokio::time::{sleep, timeout};

/// Time limit: twice the time of a renewal.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);

/// A controller of every cluster that may create pods, and set finalizers of one kind only.
const ASKER: &str = "system:serviceaccount:kube-system:replicaset-controller";

/// Creates the kinds that are missing, before any Deployment: the first question fills the map, so that on a fresh
/// cluster nobody has to wait for its renewal. The charts adopt them.
pub async fn create_missing_kinds(client: &Client) -> Result<()> {
    let kinds = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in catena_api::crds() {
        let name = crd.name_any();
        let created = async {
            if kinds.get_metadata_opt(&name).await?.is_none() {
                // With helm's field manager, so that the next upgrade meets no field of another manager.
                kinds.patch(&name, &PatchParams::apply("helm"), &Patch::Apply(&crd)).await?;
            }
            Ok::<_, kube::Error>(())
        };
        created.await.with_context(|| format!("could not create {name}"))?;
    }
    for crd in catena_api::crds() {
        until(&crd.name_any(), "is not served", async || is_served(client, &crd).await).await?;
    }
    Ok(())
}

/// Repeats a check of a definition until it is true.
async fn until(definition: &str, problem: &str, is_so: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let asked = async {
        while !is_so().await? {
            sleep(PAUSE).await;
        }
        Ok(())
    };
    timeout(ADMISSION_TIMEOUT, asked).await.with_context(|| {
        let seconds = ADMISSION_TIMEOUT.as_secs();
        format!("{definition} {problem} after {seconds} s; `kubectl describe crd {definition}` may say why")
    })?
}

async fn is_served(client: &Client, crd: &CustomResourceDefinition) -> Result<bool> {
    let version = format!("{}/{}", crd.spec.group, served_version(crd));
    match client.list_api_group_resources(&version).await {
        Ok(list) => Ok(list.resources.iter().any(|resource| resource.kind == crd.spec.names.kind)),
        // For a group that is not served yet, the answer is a page and not a Status with a reason.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error).with_context(|| format!("could not ask for the kinds of {version}")),
    }
}

fn served_version(crd: &CustomResourceDefinition) -> &str {
    let served = crd.spec.versions.iter().find(|version| version.served);
    served.map(|version| version.name.as_str()).unwrap_or_default()
}

/// Repeats the request until every kind of ours is known to the admission of owners: the kinds of the charts, and not those
/// that a test or an example adds.
pub async fn our_kinds(kubeconfig: &Path) -> Result<()> {
    let asker = client_as(kubeconfig, Some(ASKER)).await?;
    for crd in catena_api::crds() {
        let problem = "is not known as a kind of owners";
        until(&crd.name_any(), problem, async || is_known(&asker, &crd).await).await?;
    }
    Ok(())
}

async fn is_known(asker: &Client, crd: &CustomResourceDefinition) -> Result<bool> {
    let dependent: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "is-the-kind-known",
            "ownerReferences": [{
                "apiVersion": format!("{}/{}", crd.spec.group, served_version(crd)),
                "kind": crd.spec.names.kind,
                "name": "nobody",
                "uid": "nobody",
                "blockOwnerDeletion": true,
            }],
        },
        "spec": { "containers": [{ "name": "none", "image": "none" }] },
    }))?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    match Api::<Pod>::default_namespaced(asker.clone()).create(&dry_run, &dependent).await {
        Ok(_) => Ok(true),
        // Refused in any case: once the kind is known, because the user may not set its finalizers.
        Err(kube::Error::Api(status)) if status.is_forbidden() => {
            Ok(!status.message.contains("cannot find RESTMapping"))
        }
        Err(error) => Err(error).context("could not ask whether a kind is known"),
    }
}
