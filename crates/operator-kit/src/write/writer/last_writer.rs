//! Who wrote a field last, by the `managedFields` of its object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::{api::GetParams, core::PartialObjectMeta};
use operator_watch::Live;
use serde_json::{Map, Value};

use super::{OnBehalf, target::Target};

impl OnBehalf<'_> {
    /// The manager that wrote a field of an object last, other than this one; `None` if that is not known.
    pub(super) async fn last_writer(&self, target: &Target<'_>, field: &str) -> Option<String> {
        let request = target.request().get_metadata(&target.name, &GetParams::default()).ok()?;
        let found: PartialObjectMeta = Live::in_time(self.writer.client.request(request)).await.ok()?;
        last_writer(field, found.metadata.managed_fields?, self.writer.manager)
    }
}

fn last_writer(field: &str, entries: Vec<ManagedFieldsEntry>, own: &str) -> Option<String> {
    let others = entries.into_iter().filter(|entry| entry.manager.as_deref() != Some(own));
    let writers = others.filter(|entry| entry.fields_v1.as_ref().is_some_and(|fields| has(&fields.0, field)));
    writers.max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?.manager
}

/// Whether a set of fields has a field, or a whole of which it is a part. Names may themselves contain dots.
fn has(fields: &Value, field: &str) -> bool {
    fields.as_object().into_iter().flatten().any(|(name, below)| {
        let Some(rest) = name.strip_prefix("f:").and_then(|name| field.strip_prefix(name)) else {
            return false;
        };
        let is_whole = || below.as_object().is_some_and(Map::is_empty);
        rest.is_empty() || rest.strip_prefix('.').is_some_and(|rest| is_whole() || has(below, rest))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, time: &str, fields: &Value) -> ManagedFieldsEntry {
        serde_json::from_value(json!({"manager": manager, "time": time, "fieldsV1": fields})).unwrap()
    }

    #[test]
    fn the_last_other_manager_of_the_very_field_is_named() {
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        let others = json!({"f:spec": {"f:parameters": {".": {}, "f:env.A": {}}, "f:replicasets": {}}});
        let entries = || {
            vec![
                entry("own", "2026-01-01T00:00:09Z", &replicas),
                entry("edit", "2026-01-01T00:00:01Z", &replicas),
                entry("hpa", "2026-01-01T00:00:02Z", &replicas),
                entry("other", "2026-01-01T00:00:03Z", &others),
                entry("status", "2026-01-01T00:00:04Z", &json!({"f:status": {"f:replicas": {}}})),
            ]
        };
        let of = |field| last_writer(field, entries(), "own");
        assert_eq!(of("spec.replicas").as_deref(), Some("hpa"));
        assert_eq!(of("spec.parameters.env.A").as_deref(), Some("other"));
        assert_eq!(of("spec.parameters.env.B"), None, "nobody has it: it was removed");
    }

    #[test]
    fn the_manager_of_a_whole_is_that_of_its_parts() {
        let whole = vec![entry("apply", "2026-01-01T00:00:01Z", &json!({"f:spec": {"f:parameters": {}}}))];
        assert_eq!(last_writer("spec.parameters.image", whole, "own").as_deref(), Some("apply"));
        let list = json!({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:image": {}}}}});
        let list = vec![entry("apply", "2026-01-01T00:00:01Z", &list)];
        assert_eq!(last_writer("spec.containers", list, "own").as_deref(), Some("apply"));
    }
}
