//! Which kinds take a condition.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, discovery::ApiResource};
use serde_json::Value;

use crate::{error::Error, kind::CommandKind};
use operator_kit::{ReadError, TrimmedObject};

/// How long it is believed what a definition said: it may be mended.
const BELIEVED: Duration = Duration::from_secs(300);

/// Knows of each kind whether its conditions are a list with the key `type`, in any other of which an apply would wipe the
/// conditions of others, and whether they have the generation that ours is of.
pub struct Schemas {
    client: Client,
    known: Mutex<HashMap<Arc<str>, (bool, Instant)>>,
}

impl Schemas {
    pub fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// Whether the condition `Bound` may be written on commands of a kind.
    pub async fn take_condition(&self, kind: &CommandKind) -> Result<bool, Error> {
        if !kind.reports_bound {
            return Ok(false);
        }
        if let Some((known, since)) = self.known().get(&*kind.fingerprint)
            && since.elapsed() < BELIEVED
        {
            return Ok(*known);
        }
        let api: Api<TrimmedObject> =
            Api::all_with(self.client.clone(), &ApiResource::erase::<CustomResourceDefinition>(&()));
        let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
        let definition = api
            .get_opt(&name)
            .await
            .map_err(|error| ReadError::of(&error, "CustomResourceDefinition", &name))?;
        let takes = definition
            .is_some_and(|definition| has_keyed_conditions(&definition.data, &kind.resource.version));
        if !takes {
            tracing::warn!(
                kind = &*kind.id,
                "reportsBound: the schema of this kind has no conditions with observedGeneration, x-kubernetes-list-type map and the key type, so that Events are written instead; set reportsBound: false"
            );
        }
        self.known().insert(kind.fingerprint.clone(), (takes, Instant::now()));
        Ok(takes)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Arc<str>, (bool, Instant)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_keyed_conditions(definition: &Value, version: &str) -> bool {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let version = versions.into_iter().flatten().find(|served| served["name"] == version);
    version.is_some_and(|version| {
        let conditions =
            &version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["conditions"];
        !version["subresources"]["status"].is_null()
            && conditions["x-kubernetes-list-type"] == "map"
            && conditions["x-kubernetes-list-map-keys"] == serde_json::json!(["type"])
            && (!conditions["items"]["properties"]["observedGeneration"].is_null()
                || conditions["items"]["x-kubernetes-preserve-unknown-fields"] == true)
    })
}
