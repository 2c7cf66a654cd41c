//! Finds the kinds that accept the condition.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use command_binder::kind::CommandKind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::watch::{ReadCause, ReadError, TrimmedObject};
use parking_lot::Mutex;
use serde_json::Value;

/// Lifetime of a finding about a definition, which may be fixed.
const SCHEMA_LIFETIME: Duration = Duration::from_secs(300);
/// Lifetime of a failure to read a definition.
const FAILURE_LIFETIME: Duration = Duration::from_secs(10);

/// Knows for each kind whether its conditions are a list with the key `type`, and have `observedGeneration`. In any
/// other list, an apply would wipe the conditions of others.
pub struct Schemas {
    client: Client,
    known: Mutex<Known>,
}

/// By fingerprint and version: whether it accepts the condition, if that is known, and when it is looked up again.
type Known = HashMap<(Arc<str>, String), (Option<bool>, Instant)>;

impl Schemas {
    pub fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// Whether the condition `Bound` may be written on commands of a kind in a version; `None` if that is not known,
    /// because its definition cannot be read for the moment.
    pub async fn take_condition(&self, kind: &CommandKind, version: &str) -> Option<bool> {
        if !kind.reports_bound {
            return Some(false);
        }
        let key = (kind.fingerprint.clone(), version.to_owned());
        let before = self.known.lock().get(&key).copied();
        if let Some((known, until)) = before
            && Instant::now() < until
        {
            return known;
        }
        let before = before.and_then(|(known, _)| known);
        let definition = match self.definition(kind).await {
            Ok(definition) => definition,
            Err(error) => {
                tracing::warn!(entry = &*kind.id, "it is unknown whether its schema has conditions: {error}");
                // A missing right may stay so, and Events need none on the definition.
                let may_not = matches!(error.cause, ReadCause::Forbidden { .. });
                let takes = before.or(may_not.then_some(false));
                self.known.lock().insert(key, (takes, Instant::now() + FAILURE_LIFETIME));
                return takes;
            }
        };
        let takes = definition.is_some_and(|definition| has_keyed_conditions(&definition.data, version));
        // Concurrent passes look it up concurrently.
        self.known.lock().insert(key, (Some(takes), Instant::now() + SCHEMA_LIFETIME));
        if !takes && before != Some(false) {
            tracing::warn!(
                entry = &*kind.id,
                "reportsBound: the schema of this kind has no conditions with observedGeneration, x-kubernetes-list-type map and the key type, so that Events are written instead; set reportsBound: false"
            );
        }
        Some(takes)
    }

    /// The definition of a kind, if it has one. Kinds of the core group have none, and the chart grants no right to look
    /// for it.
    async fn definition(&self, kind: &CommandKind) -> Result<Option<TrimmedObject>, ReadError> {
        if kind.resource.group.is_empty() {
            return Ok(None);
        }
        let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
        let definitions: Api<TrimmedObject> = Api::all_with(self.client.clone(), &definitions);
        let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
        let found = definitions.get_opt(&name).await;
        found.map_err(|error| ReadError::of(&error, "CustomResourceDefinition", &name))
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
