//! Which pods without a controller a set may adopt. Pure.
//!
//! Labels and annotations can be copied, as `kubectl debug --copy-to` does. So a pod is adopted only if its name
//! follows from its label and annotations. What it runs is not compared: admission may add containers, and rewrite images.

use catena_api::{BasicReplicaSet, keys};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_kit::write::Ownership;
use operator_templates::{Digest, Templates};

use crate::revision::{POD, subject};

/// The origin of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'p> {
    /// The uid of the set.
    pub set: &'p str,
    /// The revision.
    pub revision: &'p str,
    /// The place.
    pub slot: &'p str,
}

impl<'p> Origin<'p> {
    /// The origin that a pod claims; `None` if the claim is incomplete, or if the pod has a controller.
    #[must_use]
    pub fn of(metadata: &'p ObjectMeta) -> Option<Self> {
        let label = metadata.labels.as_ref()?.get(keys::REPLICA_SET_UID)?;
        let annotations = metadata.annotations.as_ref()?;
        let (revision, slot) = (annotations.get(keys::HASH)?, annotations.get(keys::SLOT)?);
        Ownership::controller_of(metadata).is_none().then_some(Self { set: label, revision, slot })
    }

    /// The suffix of the pod's name, by which a repeated create, after a crash or with a stale cache, meets its own
    /// pod.
    #[must_use]
    pub fn suffix(&self) -> String {
        Digest::short(&[self.set, self.revision, self.slot])
    }
}

/// Whether a pod without a controller was created from this revision, for the set or a former one of its name.
#[must_use]
pub fn is_own(pod: &ObjectMeta, set: &BasicReplicaSet, revision: &str, templates: &Templates) -> bool {
    let Some(origin) = Origin::of(pod).filter(|origin| origin.revision == revision) else { return false };
    let rendered = templates.render_object(&set.spec.template, &subject(set, &origin.suffix()), &[POD]);
    rendered.is_ok_and(|rendered| rendered["metadata"]["name"].as_str() == pod.name.as_deref())
}

#[cfg(test)]
mod tests {
    use catena_api::BasicReplicaSetSpec;
    use serde_json::{Value, json};

    use super::*;

    fn metadata(changes: &Value) -> ObjectMeta {
        let mut metadata = json!({
            "labels": {keys::REPLICA_SET_UID: "s1"},
            "annotations": {keys::HASH: "h", keys::SLOT: "2"},
        });
        for (field, value) in changes.as_object().unwrap() {
            metadata[field.as_str()] = value.clone();
        }
        serde_json::from_value(metadata).unwrap()
    }

    #[test]
    fn the_name_follows_from_what_a_pod_says_it_was_made_from() {
        let whole = metadata(&json!({}));
        let origin = Origin::of(&whole).unwrap();
        assert_eq!(origin, Origin { set: "s1", revision: "h", slot: "2" });
        assert_eq!(origin.suffix(), Digest::short(&["s1", "h", "2"]));
        for less in [
            json!({"labels": {}}),
            json!({"annotations": {keys::HASH: "h"}}),
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": true}]}),
        ] {
            assert_eq!(Origin::of(&metadata(&less)), None, "{less}");
        }
    }

    #[test]
    fn an_orphan_is_own_by_its_name_and_revision_alone() {
        let template = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name ~ '-' ~ suffix }}}}";
        let templates =
            Templates::compile(&[("default".to_owned(), template.to_owned())].into(), keys::GROUP);
        let set = BasicReplicaSet {
            metadata: ObjectMeta {
                name: Some("web".into()),
                namespace: Some("shop".into()),
                uid: Some("s2".into()),
                ..ObjectMeta::default()
            },
            spec: BasicReplicaSetSpec { template: "default".into(), ..BasicReplicaSetSpec::default() },
            status: None,
        };
        let is_own = |changes: Value, revision: &str| is_own(&metadata(&changes), &set, revision, &templates);
        let name = format!("web-{}", Digest::short(&["s1", "h", "2"]));
        assert!(is_own(json!({"name": name}), "h"), "whichever set of this name made it");
        assert!(!is_own(json!({"name": name}), "another"));
        // A copy, as by `kubectl debug --copy-to`, has all labels and annotations.
        assert!(!is_own(json!({"name": "dbg"}), "h"));
        assert!(!is_own(json!({}), "h"));
        let other = format!("api-{}", Digest::short(&["s1", "h", "2"]));
        assert!(!is_own(json!({"name": other}), "h"), "another set made it");
        assert!(!is_own(json!({"name": name, "annotations": {keys::HASH: "h", keys::SLOT: "3"}}), "h"));
    }
}
