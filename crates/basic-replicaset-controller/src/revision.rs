//! The revision of pods, and the record of the one that served last.

use catena_api::{BasicReplicaSet, LastServed};
use operator_templates::{Digest, Rendered, Subject, TemplateError, Templates};
use operator_watch::ObjectId;
use serde_json::Value;

/// The suffix for renderings that are of no pod: those that compute the revision.
pub const NO_POD: &str = "bcdfghjk";
/// What templates render.
pub const POD: (&str, &str) = ("v1", "Pod");
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
    with_token(&rendered.hash, set.spec.restarted_at.as_deref())
}

fn with_token(hash: &str, token: Option<&str>) -> String {
    token.map_or_else(|| hash.to_owned(), |token| Digest::sha256(&format!("{hash}\n{token}")))
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

/// The suffix in the record of a revision, which each pod replaces by its own. It follows from everything that is rendered, so
/// that no value of a user is the same.
#[must_use]
pub fn placeholder(revision: &str) -> String {
    Digest::short(&["record", revision])
}

/// The record of a revision, from its rendering with its [`placeholder`].
#[must_use]
pub fn record(revision: &str, set: &BasicReplicaSet, rendering: &Value) -> LastServed {
    let pod = Some(rendering.to_string()).filter(|pod| pod.len() <= LONGEST_RECORD);
    let restarted_at = set.spec.restarted_at.clone();
    LastServed { revision: revision.to_owned(), pod: pod.unwrap_or_default(), restarted_at }
}

/// The revision that served last, if it is not the present one and is recorded with its pod.
#[must_use]
pub fn former(set: &BasicReplicaSet, present: Option<&str>) -> Option<String> {
    let LastServed { revision, pod, .. } = set.status.as_ref()?.last_served.as_ref()?;
    (Some(&**revision) != present && !pod.is_empty()).then(|| revision.clone())
}

/// A pod from the record of this revision. A record that is not what the revision rendered is none, nor is one that would
/// write elsewhere.
#[must_use]
pub fn recorded_pod(set: &BasicReplicaSet, revision: &str, suffix: &str) -> Option<Value> {
    let recorded = set.status.as_ref()?.last_served.as_ref()?;
    let with =
        |suffix: &str| serde_json::from_str(&recorded.pod.replace(&placeholder(revision), suffix)).ok();
    let pod: Value = with(suffix)?;
    let metadata = pod.get("metadata").filter(|metadata| metadata.is_object())?;
    let is_map = |field: &str| metadata.get(field).is_none_or(|map| map.is_object() || map.is_null());
    let is_its = metadata["namespace"] == *ObjectId::of(set).namespace
        && metadata["name"].as_str().is_some_and(|name| ObjectId::is_name(name) && name.contains(suffix));
    let is_of_revision = recorded.revision == revision && has_hash(recorded, with("")?);
    (is_its && is_map("labels") && is_map("annotations") && is_of_revision).then_some(pod)
}

/// Whether a rendering without a suffix is the one whose hash is recorded. The hash has no namespace if the template names none.
fn has_hash(recorded: &LastServed, mut rendering: Value) -> bool {
    let token = recorded.restarted_at.as_deref();
    let is_same =
        |rendering: &Value| with_token(&Digest::sha256(&rendering.to_string()), token) == recorded.revision;
    is_same(&rendering) || {
        let metadata = rendering.pointer_mut("/metadata").and_then(Value::as_object_mut);
        metadata.is_some_and(|metadata| metadata.remove("namespace").is_some()) && is_same(&rendering)
    }
}

#[cfg(test)]
mod tests {
    use catena_api::{BasicReplicaSetStatus, keys};
    use serde_json::json;

    use super::*;

    const TEMPLATE: &str = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name ~ '-' ~ suffix }}}, \
        spec: {hostname: {{ parameters.host }}}}";

    fn set(parameters: &Value) -> BasicReplicaSet {
        let set = json!({
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet",
            "metadata": {"name": "web", "namespace": "shop", "uid": "s1"}, "spec": {"parameters": parameters},
        });
        serde_json::from_value(set).unwrap()
    }

    fn with_record(set: BasicReplicaSet, last_served: LastServed) -> BasicReplicaSet {
        let status = BasicReplicaSetStatus { last_served: Some(last_served), ..Default::default() };
        BasicReplicaSet { status: Some(status), ..set }
    }

    /// A set with the record of a rendering with the suffix [`NO_POD`], and its revision.
    fn recorded(pod: &Value) -> (BasicReplicaSet, String) {
        let revision = Digest::sha256(&pod.to_string().replace(NO_POD, ""));
        let pod = pod.to_string().replace(NO_POD, &placeholder(&revision));
        let set = set(&json!({}));
        let record = record(&revision, &set, &serde_json::from_str(&pod).unwrap());
        (with_record(set, record), revision)
    }

    fn rendering(namespace: &str, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}})
    }

    #[test]
    fn a_pod_of_the_revision_that_served_last_is_made_from_its_record_under_its_own_name() {
        let (set, old) = recorded(&rendering("shop", &format!("web-{NO_POD}")));
        assert_eq!(former(&set, Some("new")), Some(old.clone()));
        assert_eq!(former(&set, None), Some(old.clone()), "the template may be broken");
        assert_eq!(former(&set, Some(&old)), None, "it is the present one");
        assert_eq!(recorded_pod(&set, &old, "xxxxxxxx"), Some(rendering("shop", "web-xxxxxxxx")));
        assert_eq!(recorded_pod(&set, "new", "xxxxxxxx"), None);
        let (long, _) = recorded(&rendering("shop", &"x".repeat(LONGEST_RECORD)));
        assert_eq!(former(&long, Some("new")), None, "it is too long to be recorded");
    }

    #[test]
    fn a_pod_from_a_record_is_what_its_template_rendered_whatever_the_values_are() {
        let templates =
            Templates::compile(&[("default".to_owned(), TEMPLATE.to_owned())].into(), keys::GROUP);
        for (host, token) in [("web", None), ("web", Some("a")), (NO_POD, None)] {
            let mut set = set(&json!({"host": host}));
            set.spec.restarted_at = token.map(str::to_owned);
            let revision = revision(&templates, &set).unwrap();
            let pod =
                |suffix: &str| templates.render_object("default", &subject(&set, suffix), &[POD]).unwrap();
            let record = record(&revision, &set, &pod(&placeholder(&revision)));
            let mut later = with_record(set.clone(), record);
            later.spec.restarted_at = Some("later".to_owned());
            assert_eq!(
                recorded_pod(&later, &revision, "xxxxxxxx"),
                Some(pod("xxxxxxxx")),
                "{host} {token:?}"
            );
        }
    }

    #[test]
    fn a_record_of_something_else_than_its_revision_rendered_is_none() {
        let (set, revision) = recorded(&rendering("shop", &format!("web-{NO_POD}")));
        let served = set.status.as_ref().unwrap().last_served.clone().unwrap();
        let evil = served.pod.replace("\"Pod\"", "\"Pod\",\"spec\":{\"hostname\":\"evil\"}");
        for forged in [
            LastServed { pod: evil, ..served.clone() },
            LastServed { revision: "deadbeef00".to_owned(), ..served.clone() },
            LastServed { restarted_at: Some("x".to_owned()), ..served },
        ] {
            let of = forged.revision.clone();
            assert!(recorded_pod(&set, &revision, "xxxxxxxx").is_some());
            let forged = with_record(set.clone(), forged);
            assert_eq!(recorded_pod(&forged, &of, "xxxxxxxx"), None, "{:?}", forged.status);
        }
    }

    #[test]
    fn a_record_that_would_write_elsewhere_or_that_was_too_long_is_none() {
        let mut labels = rendering("shop", &format!("web-{NO_POD}"));
        labels["metadata"]["labels"] = json!("x");
        let long = rendering("shop", &format!("web-{NO_POD}-{}", "x".repeat(LONGEST_RECORD)));
        let elsewhere = rendering("lab", &format!("web-{NO_POD}"));
        for pod in [labels, long, elsewhere, rendering("shop", "web"), json!("x"), json!({"metadata": 1})] {
            let (set, revision) = recorded(&pod);
            assert_eq!(recorded_pod(&set, &revision, "xxxxxxxx"), None, "{pod}");
        }
    }
}
