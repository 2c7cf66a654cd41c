//! A child controller that breaks the replica contract in one single way at a time. It runs inside the test.

mod cheat;
mod pass;

use std::time::Duration;

use anyhow::Result;
use futures::future::join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
    core::{DynamicObject, GroupVersionKind},
    discovery::ApiResource,
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde_json::json;
use tokio::{task::JoinSet, time::interval};

pub use cheat::Cheat;

use crate::{Namespace, WAIT_TIMEOUT, eventually, kubectl};

/// Time between two passes over all children.
const PASS_INTERVAL: Duration = Duration::from_millis(200);

/// The controller of a kind of its own, until this is dropped.
pub struct CheatingChild {
    /// The plural and the group of its kind.
    pub resource: String,
    /// The API version of its kind.
    pub api_version: String,
    _task: JoinSet<()>,
}

impl CheatingChild {
    /// Installs the kind, which is deleted with the namespace, and starts its controller.
    pub async fn start(client: Client, namespace: &Namespace) -> Result<Self> {
        let group = format!("{}.example.com", namespace.name);
        let resource = format!("cheats.{group}");
        let definition = definition(&group, &namespace.owns(&resource))?;
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        definitions.create(&PostParams::default(), &definition).await?;
        let established = await_condition(definitions, &resource, is_crd_established());
        tokio::time::timeout(WAIT_TIMEOUT, established).await??;
        let schema = format!("/openapi/v3/apis/{group}/v1");
        eventually("its schema is published", WAIT_TIMEOUT, async || {
            kubectl(&["get", "--raw", &schema]).await.map_err(|error| format!("{error:#}"))
        })
        .await;
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Cheat"));
        let task = JoinSet::from_iter([async move {
            let mut turns = interval(PASS_INTERVAL);
            loop {
                turns.tick().await;
                let children = Api::<DynamicObject>::all_with(client.clone(), &kind);
                let Ok(children) = children.list(&ListParams::default()).await else { continue };
                // A write that meets a change is repeated by the next pass. One after the other, they would be late by
                // seconds on a busy machine, and a state that lasts for less would never be reported.
                join_all(children.iter().map(|child| pass::over(&client, &kind, child))).await;
            }
        }]);
        Ok(Self { resource, api_version: format!("{group}/v1"), _task: task })
    }
}

fn definition(group: &str, metadata: &serde_json::Value) -> Result<CustomResourceDefinition> {
    let (integer, text) = (json!({"type": "integer"}), json!({"type": "string"}));
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut definition = json!({
        "metadata": metadata,
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "cheats", "singular": "cheat", "kind": "Cheat"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "replicas": integer, "restartedAt": text, "image": text, "cheat": text,
                    }},
                    "status": {"type": "object", "properties": {
                        "active": integer, "updated": integer, "observedGeneration": integer, "writes": integer,
                        "selector": text, "blockedBy": open, "conditions": {"type": "array", "items": open},
                    }},
                }}},
            }],
        },
    });
    definition["metadata"]["labels"] = json!({"contract.catena.dev/replicas": "v1"});
    Ok(serde_json::from_value(definition)?)
}
