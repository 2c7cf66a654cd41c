//! Finds what the status of a kind accepts.

use std::{collections::HashMap, sync::Arc, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, discovery::ApiResource};
use operator_watch::{ApiError, Cause, DynamicRow, Live, PrunedObject, WriteTarget};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

/// What the status of a kind accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusSchema {
    /// Whether its conditions are a list with the key `type`, and have all fields of a condition. In any other list, an apply would
    /// wipe the conditions of others.
    pub takes_conditions: bool,
    /// Whether it has the fields of a run: `startTime`, `completionTime`, `progress` and `observedGeneration`.
    pub takes_run: bool,
    /// Whether none of this is known, because the right to read the definition is missing.
    pub is_unread: bool,
}

/// Knows what the status of each kind accepts.
pub struct Schemas {
    client: Client,
    /// By the id of the kind.
    known: Mutex<HashMap<Arc<str>, Known>>,
}

struct Known {
    watch: Arc<WriteTarget>,
    /// `None` if the definition could not be read.
    schema: Option<StatusSchema>,
    /// When it is looked up again.
    again_at: Instant,
}

/// Time between looks: a change of the schema begins no new watch.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// The same while they fail.
const RETRY_DELAY: Duration = Duration::from_secs(10);

impl Schemas {
    /// Knows nothing yet.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// What the status of an object's kind accepts; `None` if that is not known, because its definition cannot be read for the
    /// moment. `warn` gets what was found, once for each watch and change.
    pub async fn of<R>(&self, object: &DynamicRow<R>, warn: impl Fn(StatusSchema)) -> Option<StatusSchema> {
        let DynamicRow { kind_id, write_target, .. } = object;
        let mut before = None;
        if let Some(Known { watch, schema, again_at }) = self.known.lock().get(kind_id)
            && Arc::ptr_eq(watch, write_target)
        {
            if Instant::now() < *again_at {
                return *schema;
            }
            before = *schema;
        }
        // Concurrent passes look it up concurrently.
        let resource = object.resource();
        let (schema, delay) = match self.definition(resource).await {
            Ok(definition) => {
                let schema = definition.map(|found| StatusSchema::of(&found.data, &resource.version));
                let schema = schema.unwrap_or_default();
                if before != Some(schema) {
                    warn(schema);
                }
                (Some(schema), LOOK_INTERVAL)
            }
            Err(error) => {
                tracing::warn!(
                    entry = &**kind_id,
                    "it is unknown whether its schema has conditions: {error}"
                );
                // A missing right may stay so, and Events need none on the definition.
                let unread = StatusSchema { is_unread: true, ..StatusSchema::default() };
                let unread = (error.cause == Cause::Forbidden).then_some(unread);
                (before.or(unread), RETRY_DELAY)
            }
        };
        let known = Known { watch: write_target.clone(), schema, again_at: Instant::now() + delay };
        self.known.lock().insert(kind_id.clone(), known);
        schema
    }

    /// The definition of a kind, if it has one. Kinds of the core group have none, and the chart grants no right to look
    /// for it.
    async fn definition(&self, resource: &ApiResource) -> Result<Option<PrunedObject>, ApiError> {
        if resource.group.is_empty() {
            return Ok(None);
        }
        let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
        let name = format!("{}.{}", resource.plural, resource.group);
        Live::object(&self.client, &definitions, "", &name).await
    }
}

impl StatusSchema {
    /// What a definition says of one of its versions.
    fn of(definition: &Value, version: &str) -> Self {
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let versions = || versions.into_iter().flatten();
        let has_status = |version: &Value| !version["subresources"]["status"].is_null();
        let Some(served) = versions().find(|served| served["name"] == version && has_status(served)) else {
            return Self::default();
        };
        let status = &served["schema"]["openAPIV3Schema"]["properties"]["status"];
        let is_open = |schema: &Value| schema["x-kubernetes-preserve-unknown-fields"] == true;
        let conditions = &status["properties"]["conditions"];
        let items = &conditions["items"];
        let mut of_items =
            ["type", "status", "observedGeneration", "lastTransitionTime", "reason", "message"].into_iter();
        let takes_conditions = conditions["x-kubernetes-list-type"] == "map"
            && conditions["x-kubernetes-list-map-keys"] == serde_json::json!(["type"])
            && (is_open(items) || of_items.all(|field| !items["properties"][field].is_null()));
        let mut fields = ["startTime", "completionTime", "progress", "observedGeneration"].into_iter();
        // In a version without it, whoever may change an object can write its status.
        let is_ours = versions().filter(|version| version["served"] == true).all(has_status);
        let has_fields = is_open(status) || fields.all(|field| !status["properties"][field].is_null());
        Self { takes_conditions, takes_run: takes_conditions && has_fields && is_ours, is_unread: false }
    }
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;
    use operator_kit::testing::{Answer, answering, in_turn, refused};
    use serde_json::json;

    use super::*;

    /// An object of a kind with a definition.
    fn drain() -> DynamicRow<()> {
        let resource = ApiResource {
            group: "ops.example".into(),
            version: "v1".into(),
            api_version: "ops.example/v1".into(),
            kind: "Drain".into(),
            plural: "drains".into(),
        };
        let write_target = Arc::new(WriteTarget::unwatched(resource));
        DynamicRow { metadata: ObjectMeta::default(), kind_id: "drains".into(), write_target, row: () }
    }

    #[tokio::test(start_paused = true)]
    async fn without_the_right_to_read_a_definition_nothing_is_known_of_it() {
        for (code, expected) in [(403, Some(true)), (500, None)] {
            let (client, _log) = answering(move |_| refused(code));
            let schema = Schemas::new(client).of(&drain(), |_| {}).await;
            assert_eq!(schema.map(|schema| schema.is_unread), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_of_a_schema_is_noticed_and_what_was_read_counts_while_it_cannot_be_read() {
        let version = |subresources: Value| {
            let status = json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {"conditions": {
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {"x-kubernetes-preserve-unknown-fields": true},
            }}});
            let schema = json!({"openAPIV3Schema": {"properties": {"status": status}}});
            let version = json!({"name": "v1", "subresources": subresources, "schema": schema});
            Answer::Object(json!({"metadata": {"name": "drains"}, "spec": {"versions": [version]}}))
        };
        let with_status = version(json!({"status": {}}));
        let (client, log) =
            answering(in_turn(&[with_status, refused(403), refused(500), version(Value::Null)]));
        let (schemas, drain) = (Schemas::new(client), drain());
        for (seconds, takes_run) in [(0, true), (50, true), (11, true), (11, true), (11, false)] {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            assert_eq!(schemas.of(&drain, |_| {}).await.map(|schema| schema.takes_run), Some(takes_run));
        }
        assert_eq!(log.take().len(), 4);
    }
}
