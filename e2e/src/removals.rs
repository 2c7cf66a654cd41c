//! Whole kinds and namespaces that go in the middle of work.

use std::time::Duration;

use anyhow::Result;
use catena_api::BasicReplicaSet;
use k8s_openapi::{
    api::core::v1::Namespace as CoreNamespace,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::api::{DeleteParams, ListParams};

use crate::{Cluster, Undo, WAIT_TIMEOUT, Work, eventually, eventually::until_gone};

/// A failing watch is tolerated for half a minute.
const LONG: Duration = Duration::from_secs(150);

/// Deletes the definition of `BasicReplicaSets`, and with it all of them, installs it again, and waits until those of the work are
/// created again.
pub async fn replace_definition(cluster: &Cluster, work: &Work) -> Result<()> {
    let definitions = cluster.all::<CustomResourceDefinition>();
    let name = "basicreplicasets.catena.dev";
    let undo = Undo::keep(&definitions, name).await?;
    definitions.delete(name, &DeleteParams::default()).await?;
    until_gone("the definition is gone", WAIT_TIMEOUT, definitions, name).await;
    undo.now(cluster.client.clone()).await?;
    let sets = work.namespace.api::<BasicReplicaSet>();
    eventually("the sets are created again", LONG, async || match sets.list(&ListParams::default()).await {
        Ok(sets) if !sets.items.is_empty() => Ok(()),
        other => Err(format!("{:?}", other.map(|_| "there is none"))),
    })
    .await;
    Ok(())
}

/// Deletes the namespace of the work, and waits until it is gone.
pub async fn delete_namespace(cluster: &Cluster, work: &Work) -> Result<()> {
    let name = work.namespace.name.as_str();
    cluster.all::<CoreNamespace>().delete(name, &DeleteParams::default()).await?;
    cluster.until_namespace_gone(name).await;
    Ok(())
}
