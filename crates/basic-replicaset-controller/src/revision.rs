//! The revision of pods, and the record of the one that served last.

use catena_api::{BasicReplicaSet, LastServed};
use operator_kit::{
    object::ObjectId,
    render::{ApiKind, Rendered, Subject, TemplateError, Templates, is_object_name, sha256},
};
use serde_json::Value;

/// The suffix for renderings that are of no pod: those that compute the revision, and records.
pub const NO_POD: &str = "bcdfghjk";
/// What templates render.
pub const POD: ApiKind<'static> = ("v1", "Pod");
/// Maximum length of a recorded pod, in bytes.
const LONGEST_RECORD: usize = 256 * 1024;

/// The revision of the pods of a set: a hash of the rendered object, and of the restart token if there is one.
///
/// # Errors
/// When the template renders no pod, or pods whose names do not differ.
pub fn revision(templates: &Templates, set: &BasicReplicaSet) -> Result<String, TemplateError> {
    let rendered = templates.render(&set.spec.template, &subject(set, NO_POD), &[POD])?;
    Ok(of(&rendered, set))
}

/// The parameters of a set that its template does not read.
#[must_use]
pub fn unread(templates: &Templates, set: &BasicReplicaSet) -> Vec<String> {
    templates.unread(&set.spec.template, &subject(set, NO_POD))
}

/// The revision of a set whose template renders to this.
#[must_use]
pub fn of(rendered: &Rendered, set: &BasicReplicaSet) -> String {
    let token = set.spec.restarted_at.as_deref();
    token.map_or_else(|| rendered.hash.clone(), |token| sha256(&format!("{}\n{token}", rendered.hash)))
}

/// The values that a template can use for a pod of a set.
#[must_use]
pub fn subject<'s>(set: &'s BasicReplicaSet, suffix: &'s str) -> Subject<'s> {
    let ObjectId { namespace, name, uid } = ObjectId::of(set);
    Subject {
        name,
        namespace,
        uid,
        labels: set.metadata.labels.as_ref(),
        annotations: set.metadata.annotations.as_ref(),
        parameters: &set.spec.parameters,
        suffix,
    }
}

/// The record of a revision, from its rendering with the suffix [`NO_POD`].
#[must_use]
pub fn record(revision: &str, rendering: &Value) -> LastServed {
    let pod = Some(rendering.to_string()).filter(|pod| pod.len() <= LONGEST_RECORD);
    LastServed { revision: revision.to_owned(), pod: pod.unwrap_or_default() }
}

/// The revision that served last, if it is not the present one and is recorded with its pod.
#[must_use]
pub fn former(set: &BasicReplicaSet, present: Option<&str>) -> Option<String> {
    let LastServed { revision, pod } = set.status.as_ref()?.last_served.as_ref()?;
    (Some(&**revision) != present && !pod.is_empty()).then(|| revision.clone())
}

/// A pod from the record of this revision. A record that somebody has tampered with is none: it must not write elsewhere.
#[must_use]
pub fn recorded_pod(set: &BasicReplicaSet, revision: &str, suffix: &str) -> Option<Value> {
    let recorded = set.status.as_ref()?.last_served.as_ref()?;
    if recorded.revision != revision {
        return None;
    }
    let pod: Value = serde_json::from_str(&recorded.pod.replace(NO_POD, suffix)).ok()?;
    let metadata = pod.get("metadata").filter(|metadata| metadata.is_object())?;
    let is_map = |field: &str| metadata.get(field).is_none_or(|map| map.is_object() || map.is_null());
    let is_its = metadata["namespace"] == *ObjectId::of(set).namespace
        && metadata["name"].as_str().is_some_and(|name| is_object_name(name) && name.contains(suffix));
    (is_its && is_map("labels") && is_map("annotations")).then_some(pod)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(pod: &Value) -> BasicReplicaSet {
        let set = json!({
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet",
            "metadata": {"name": "web", "namespace": "shop", "uid": "s1"}, "spec": {},
            "status": {"lastServed": record("old", pod)},
        });
        serde_json::from_value(set).unwrap()
    }

    fn rendering(namespace: &str, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}})
    }

    #[test]
    fn a_pod_of_the_revision_that_served_last_is_made_from_its_record_under_its_own_name() {
        let set = set(&rendering("shop", &format!("web-{NO_POD}")));
        assert_eq!(former(&set, Some("new")).as_deref(), Some("old"));
        assert_eq!(former(&set, None).as_deref(), Some("old"), "the template may be broken");
        assert_eq!(former(&set, Some("old")), None, "it is the present one");
        assert_eq!(recorded_pod(&set, "old", "xxxxxxxx"), Some(rendering("shop", "web-xxxxxxxx")));
        assert_eq!(recorded_pod(&set, "new", "xxxxxxxx"), None);
        let long = rendering("shop", &"x".repeat(LONGEST_RECORD));
        assert_eq!(former(&self::set(&long), Some("new")), None, "it is too long to be recorded");
    }

    #[test]
    fn a_record_that_somebody_has_altered_or_that_was_too_long_is_none() {
        let mut labels = rendering("shop", &format!("web-{NO_POD}"));
        labels["metadata"]["labels"] = json!("x");
        let long = rendering("shop", &format!("web-{NO_POD}-{}", "x".repeat(LONGEST_RECORD)));
        let elsewhere = rendering("lab", &format!("web-{NO_POD}"));
        for pod in [labels, long, elsewhere, rendering("shop", "web"), json!("x"), json!({"metadata": 1})] {
            assert_eq!(recorded_pod(&set(&pod), "old", NO_POD), None, "{pod}");
        }
    }
}
