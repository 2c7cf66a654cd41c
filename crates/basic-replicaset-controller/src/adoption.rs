//! Which pods without a controller a set may adopt. Pure.
//!
//! Labels and annotations can be copied, as `kubectl debug --copy-to` does. So a pod is adopted only if its name
//! follows from its label and annotations, and only while it runs the rendered containers. In doubt it is left alone,
//! which costs an additional pod; a wrong pod would serve.

use std::collections::BTreeSet;

use catena_api::keys;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_kit::{render::short_digest, write::owner::controller_of};
use serde_json::Value;

/// The fields that define a container's command, to which neither defaults nor admission add.
const COMMAND: [&str; 3] = ["command", "args", "workingDir"];
/// The fields to which defaults or admission may add.
const SURROUNDINGS: [&str; 3] = ["image", "env", "envFrom"];

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
        controller_of(metadata).is_none().then_some(Self { set: label, revision, slot })
    }

    /// The suffix of the pod's name, by which a repeated create, after a crash or with a stale cache, meets its own
    /// pod.
    #[must_use]
    pub fn suffix(&self) -> String {
        short_digest(&[self.set, self.revision, self.slot])
    }
}

/// Whether a live pod was created from `rendered`, and still runs it.
#[must_use]
pub fn is_as_rendered(live: &Value, name: Option<&str>, rendered: &Value) -> bool {
    let (spec, rendered_spec) = (&live["spec"], &rendered["spec"]);
    let run_the_same = |field: &str| {
        names(&spec[field]) == names(&rendered_spec[field])
            && items(&rendered_spec[field]).all(|container| {
                let live = items(&spec[field]).find(|live| live["name"] == container["name"]);
                live.is_some_and(|live| {
                    COMMAND.iter().all(|field| given(&live[field]) == given(&container[field]))
                        && SURROUNDINGS.iter().all(|field| covers(&live[field], &container[field]))
                })
            })
    };
    name == rendered["metadata"]["name"].as_str()
        && run_the_same("containers")
        && run_the_same("initContainers")
        && items(&spec["ephemeralContainers"]).next().is_none()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn names(list: &Value) -> BTreeSet<Option<&str>> {
    items(list).map(|item| item["name"].as_str()).collect()
}

/// A value that the server keeps: it drops empty lists and strings.
fn given(value: &Value) -> Option<&Value> {
    let is_empty = value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty);
    (!is_empty).then_some(value)
}

/// Whether a live value contains the rendered one, because the server adds defaults, and admission adds variables.
fn covers(live: &Value, rendered: &Value) -> bool {
    match rendered {
        Value::Null => true,
        Value::Object(fields) => {
            fields.iter().all(|(field, rendered)| covers(&live[field.as_str()], rendered))
        }
        Value::Array(rendered) if rendered.iter().all(|item| item["name"].is_string()) => {
            rendered.iter().all(|item| {
                let live = items(live).find(|live| live["name"] == item["name"]);
                live.is_some_and(|live| covers(live, item))
            })
        }
        Value::Array(rendered) => {
            items(live).count() == rendered.len()
                && items(live).zip(rendered).all(|(live, rendered)| covers(live, rendered))
        }
        rendered => live == rendered,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered() -> Value {
        json!({
            "metadata": {"name": "web-abc"},
            "spec": {
                "initContainers": [{"name": "wait", "image": "wait:1"}],
                "containers": [{
                    "name": "main", "image": "nginx:1", "args": ["-v", "1"], "command": null,
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                }],
            },
        })
    }

    /// The pod on a server, with defaults and additions by admission.
    fn live() -> Value {
        let mut live = rendered();
        let spec = &mut live["spec"];
        spec["restartPolicy"] = "Always".into();
        spec["volumes"] = json!([{"name": "kube-api-access-x"}]);
        let main = &mut spec["containers"][0];
        main["imagePullPolicy"] = "Always".into();
        main["volumeMounts"] = json!([{"name": "kube-api-access-x"}]);
        main["env"][1]["valueFrom"]["fieldRef"]["apiVersion"] = "v1".into();
        main["env"].as_array_mut().unwrap().push(json!({"name": "INJECTED", "value": "x"}));
        live
    }

    fn is_ours(change: impl FnOnce(&mut Value)) -> bool {
        let mut pod = live();
        change(&mut pod);
        is_as_rendered(&pod, Some("web-abc"), &rendered())
    }

    #[test]
    fn what_the_server_and_admission_add_is_no_difference() {
        assert!(is_ours(|_| {}));
    }

    #[test]
    fn a_pod_of_another_name_is_a_copy() {
        assert!(!is_as_rendered(&live(), Some("dbg"), &rendered()));
        assert!(!is_as_rendered(&live(), None, &rendered()));
    }

    #[test]
    fn a_pod_that_runs_something_else_is_not_taken() {
        assert!(!is_ours(|pod| pod["spec"]["containers"][0]["image"] = "busybox:1".into()));
        assert!(!is_ours(|pod| pod["spec"]["initContainers"][0]["image"] = "busybox:1".into()));
        assert!(!is_ours(|pod| pod["spec"]["containers"][0]["args"] = json!(["-v"])));
        assert!(!is_ours(|pod| pod["spec"]["containers"][0]["command"] = json!(["sleep", "infinity"])));
        assert!(is_ours(|pod| pod["spec"]["containers"][0]["command"] = json!([])));
        assert!(!is_ours(|pod| pod["spec"]["containers"][0]["env"][0]["value"] = "2".into()));
        assert!(!is_ours(|pod| pod["spec"]["containers"][0]["env"] = json!([])));
        let other = json!({"name": "debugger", "image": "busybox:1"});
        assert!(!is_ours(|pod| pod["spec"]["containers"].as_array_mut().unwrap().push(other.clone())));
        assert!(!is_ours(|pod| pod["spec"]["ephemeralContainers"] = json!([other])));
        assert!(!is_ours(|pod| pod["spec"]["initContainers"] = Value::Null));
    }

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
        assert_eq!(origin.suffix(), short_digest(&["s1", "h", "2"]));
        for less in [
            json!({"labels": {}}),
            json!({"annotations": {keys::HASH: "h"}}),
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": true}]}),
        ] {
            assert_eq!(Origin::of(&metadata(&less)), None, "{less}");
        }
    }
}
