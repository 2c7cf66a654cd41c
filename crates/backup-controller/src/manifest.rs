//! The fields from which an object can be created again.

use catena_api::{
    backup::{OF_A_DELETION, VOLUME_BINDING},
    keys,
};
use serde_json::{Map, Value};

/// Fields of `metadata` that belong to the author. All others belong to the server, or refer to objects that may be
/// gone: with a stale owner, the garbage collector would delete the restored object, and a finalizer belongs to the
/// controller that added it.
const METADATA: [&str; 4] = ["name", "namespace", "labels", "annotations"];
/// Annotations about commands that its successor has not seen.
const OF_COMMANDS: [&str; 2] = [keys::COMMANDS, keys::PINNED_REVISION];

/// The object as `kubectl create -f` creates it again.
#[must_use]
pub fn restorable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| METADATA.contains(&field.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            let left_out = [&OF_A_DELETION[..], &OF_COMMANDS, &VOLUME_BINDING].concat();
            annotations.retain(|key, _| !left_out.contains(&key.as_str()));
        }
        metadata.retain(|_, value| value.as_object().is_none_or(|map: &Map<_, _>| !map.is_empty()));
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_belongs_to_the_server_or_to_others_is_left_out() {
        let object = restorable(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "a", "namespace": "b", "labels": {"c": "d"},
                "annotations": {
                    keys::FORCE_RELEASE: "x", keys::BACKUP_STATUS: "{}", keys::COMMANDS: "[]",
                    keys::PINNED_REVISION: "{}", "pv.kubernetes.io/bind-completed": "yes",
                },
                "uid": "u", "resourceVersion": "1", "generation": 3, "creationTimestamp": "t",
                "deletionTimestamp": "t", "deletionGracePeriodSeconds": 0, "managedFields": [],
                "finalizers": [keys::BACKUP_FINALIZER], "ownerReferences": [{"uid": "gone"}],
            },
            "data": {"metadata": "stays"}, "status": {"x": 1},
        }));
        assert_eq!(
            object,
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "namespace": "b", "labels": {"c": "d"}},
                "data": {"metadata": "stays"},
            })
        );
    }
}
