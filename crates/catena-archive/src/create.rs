//! The requests of a restoration. Each can be repeated after a crash: an object that a restoration creates records the uid of
//! the object whose place it takes in the name of its field manager, until it is complete.

use catena_api::{backup::VOLUME_BINDING, keys};
use catena_cluster::{At, Change, How, read_failure};
use operator_watch::{ApiError, Cause, Verb};
use serde_json::{Value, json};

use super::rebind::{TOKEN, TOKEN_UID};

/// Begins the name of the field manager.
const MANAGER: &str = "kubectl-catena-restore";

/// What stays of a live object, by JSON pointers: what it is, how far it has come, and what binds it to others.
const KEPT: [&str; 7] = [
    "/metadata/uid",
    "/metadata/resourceVersion",
    "/metadata/ownerReferences",
    "/metadata/finalizers",
    "/spec/claimRef",
    // A token of a restart only increases.
    "/spec/restartedAt",
    // Of a kind without a subresource for it.
    "/status",
];

/// Creates an object in the place of one of the backup; a field that the server does not know is an error.
pub async fn create(place: At<'_>, object: &Value, in_place_of: &str) -> kube::Result<Value> {
    place.write(Change::Create(object), How { manager: &manager(in_place_of), ..How::STRICT }).await
}

/// Replaces what the authors of a live object wrote.
pub async fn replace(place: At<'_>, live: &Value, object: &Value) -> kube::Result<Value> {
    place.write(Change::Replace(&over(live, object.clone())), How::STRICT).await
}

/// An object of the backup in the place of a live one, of which [some fields](KEPT) stay, and what controllers have written.
pub fn over(live: &Value, mut object: Value) -> Value {
    let content = Some("/data").filter(|_| object["type"] == TOKEN);
    for kept in KEPT.into_iter().chain(content) {
        let (parent, field) = kept.rsplit_once('/').unwrap_or_default();
        let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
        if let (Some(parent), Some(value)) = (parent, live.pointer(kept)) {
            parent.insert(field.to_owned(), value.clone());
        }
    }
    for kept in VOLUME_BINDING.into_iter().chain([TOKEN_UID, keys::COMMANDS]) {
        if let Some(value) = live["metadata"]["annotations"].get(kept) {
            object["metadata"]["annotations"][kept] = value.clone();
        }
    }
    object
}

/// Changes exactly the object with this uid, or its subresource.
pub async fn merge(place: At<'_>, subresource: &str, uid: &str, mut patch: Value) -> kube::Result<Value> {
    patch["metadata"]["uid"] = uid.into();
    place.write(Change::Merge(&patch), How { subresource, ..How::default() }).await
}

/// The answer to a request, with the reason if it failed.
pub fn told<T>(answer: kube::Result<T>) -> Result<T, String> {
    answer.map_err(|error| read_failure(&error))
}

/// The reason of a failed creation, and what to do about its namespace.
pub fn creation_failure(error: &kube::Error) -> String {
    let why = read_failure(error);
    match ApiError::of(Verb::Write, error, ("", "")).cause {
        Cause::NamespaceMissing => format!("{why}: create it, and restore again"),
        Cause::NamespaceTerminating => {
            format!("{why}: create the namespace when it is gone, and restore again")
        }
        _ => why,
    }
}

fn manager(in_place_of: &str) -> String {
    // A uid has no other characters; what a file holds may have.
    let uid = in_place_of.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(64);
    format!("{MANAGER}-{}", uid.collect::<String>())
}

/// Whether a live object was created in the place of an object of the backup, and is not complete yet.
pub fn is_incomplete(live: &Value, in_place_of: &str) -> bool {
    managers(live).any(|entry| entry["manager"] == manager(in_place_of))
}

/// Whether a live `BasicDeployment` was created by a restoration of whatever backup that holds it until it is complete.
pub fn is_held(live: &Value) -> bool {
    let holds = |entry: &Value| {
        let by = entry["manager"].as_str().unwrap_or_default();
        // Whoever writes the field since then has it.
        by.starts_with(MANAGER) && !entry["fieldsV1"]["f:spec"]["f:paused"].is_null()
    };
    live["spec"]["paused"] == true && managers(live).any(holds)
}

fn managers(live: &Value) -> impl Iterator<Item = &Value> {
    live["metadata"]["managedFields"].as_array().into_iter().flatten()
}

/// Hands the fields of a created object over to those who applied them before, or to nobody: otherwise a field that they leave
/// out later would stay. It also completes the object. Others, such as those who write its status, keep their fields.
pub fn handed_over(live: &Value, in_place_of: &str, saved: Option<Value>) -> Value {
    let manager = manager(in_place_of);
    let others = managers(live).filter(|entry| entry["manager"] != manager.as_str()).cloned();
    let saved = saved.and_then(|saved| saved.as_array().cloned()).unwrap_or_default();
    let entries: Vec<Value> = others.chain(saved).collect();
    // The server takes an empty list as no change.
    if entries.is_empty() { json!([{}]) } else { entries.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_known_as_incomplete_by_its_field_manager() {
        let mut live = json!({"metadata": {"managedFields": [{"manager": "kubectl-catena-restore-u1"}]}});
        assert!(is_incomplete(&live, "u1") && !is_incomplete(&live, "u2") && !is_held(&live));
        live["spec"]["paused"] = true.into();
        assert!(!is_held(&live), "somebody has written that since");
        live["metadata"]["managedFields"][0]["fieldsV1"] = json!({"f:spec": {"f:paused": {}}});
        assert!(is_held(&live));
        let complete = json!({"metadata": {}, "spec": {"paused": true}});
        assert!(!is_incomplete(&complete, "u1") && !is_held(&complete));
        let status = json!({"manager": "controller", "operation": "Apply", "subresource": "status"});
        let live = json!({"metadata": {"managedFields": [{"manager": "kubectl-catena-restore-u1"}, status]}});
        let saved = json!({"manager": "flux", "operation": "Apply"});
        assert_eq!(handed_over(&live, "u1", Some(json!([saved]))), json!([status, saved]));
        assert_eq!(handed_over(&json!({}), "u1", None), json!([{}]));
        assert_eq!(manager("a&dryRun=All"), "kubectl-catena-restore-adryRunAll");
    }
}
