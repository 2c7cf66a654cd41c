//! Finds the kinds that accept the condition.

use std::{collections::HashMap, sync::Arc, time::Duration};

use command_binder::{command::CommandRow, kind::CommandKind};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, discovery::ApiResource};
use operator_watch::{ApiError, Cause, Source, TrimmedObject, Watched, live};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

/// Knows for each kind whether its conditions are a list with the key `type`, and have `observedGeneration`. In any
/// other list, an apply would wipe the conditions of others.
pub struct Schemas {
    client: Client,
    /// By the id of the kind, looked up for the first command of a watch.
    known: Mutex<HashMap<Arc<str>, Known>>,
}

struct Known {
    watch: Arc<Source>,
    /// `None` if the definition could not be read.
    takes_condition: Option<bool>,
    /// When it is looked up again, after a failure.
    again_at: Option<Instant>,
}

/// Time between looks while they fail.
const RETRY_DELAY: Duration = Duration::from_secs(10);

impl Schemas {
    pub fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// Whether the condition `Bound` may be written on a command; `None` if that is not known, because the definition of
    /// its kind cannot be read for the moment.
    pub async fn take_condition(&self, command: &Watched<CommandRow>) -> Option<bool> {
        let (kind, source) = (&command.row.kind, &command.source);
        if !kind.reports_bound {
            return Some(false);
        }
        if let Some(Known { watch, takes_condition, again_at }) = self.known.lock().get(&source.id)
            && Arc::ptr_eq(watch, source)
            && again_at.is_none_or(|at| Instant::now() < at)
        {
            return *takes_condition;
        }
        let know = |takes_condition, again_at| {
            let known = Known { watch: source.clone(), takes_condition, again_at };
            self.known.lock().insert(source.id.clone(), known);
            takes_condition
        };
        let definition = match self.definition(kind).await {
            Ok(definition) => definition,
            Err(error) => {
                tracing::warn!(entry = &*kind.id, "it is unknown whether its schema has conditions: {error}");
                // A missing right may stay so, and Events need none on the definition.
                let takes_condition = (error.cause == Cause::Forbidden).then_some(false);
                return know(takes_condition, Some(Instant::now() + RETRY_DELAY));
            }
        };
        let version = &command.resource().version;
        let takes_condition =
            definition.is_some_and(|definition| has_keyed_conditions(&definition.data, version));
        // Concurrent passes look it up concurrently.
        know(Some(takes_condition), None);
        if !takes_condition {
            tracing::warn!(
                entry = &*kind.id,
                "reportsBound: the schema of this kind has no conditions with observedGeneration, x-kubernetes-list-type map and the key type, so that Events are written instead; set reportsBound: false"
            );
        }
        Some(takes_condition)
    }

    /// The definition of a kind, if it has one. Kinds of the core group have none, and the chart grants no right to look
    /// for it.
    async fn definition(&self, kind: &CommandKind) -> Result<Option<TrimmedObject>, ApiError> {
        if kind.resource.group.is_empty() {
            return Ok(None);
        }
        let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
        let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
        live::object(&self.client, &definitions, "", &name).await
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
