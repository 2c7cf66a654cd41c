//! The finalizers of an object, and their holders.

use kube::core::DynamicObject;
use serde::Serialize;
use serde_json::Value;

/// A finalizer of an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finalizer {
    /// Its name.
    pub name: String,
    /// The field manager that set it and is expected to remove it, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}

/// The finalizers of an object.
pub fn finalizers(object: &DynamicObject) -> Vec<Finalizer> {
    let names = object.metadata.finalizers.iter().flatten();
    names.map(|name| Finalizer { name: name.clone(), held_by: holder(object, name) }).collect()
}

/// The manager of the entry, as recorded by the server.
fn holder(object: &DynamicObject, finalizer: &str) -> Option<String> {
    match finalizer {
        "foregroundDeletion" | "orphan" => return Some("kube-controller-manager".to_owned()),
        _ => {}
    }
    let entry = format!("v:{finalizer:?}");
    let owns = |fields: &Value| fields["f:metadata"]["f:finalizers"].get(&entry).is_some();
    let managed = object.metadata.managed_fields.iter().flatten();
    managed
        .into_iter()
        .find(|managed| managed.fields_v1.as_ref().is_some_and(|fields| owns(&fields.0)))?
        .manager
        .clone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_manager_that_set_a_finalizer_holds_it() {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "x", "finalizers": ["catena.dev/backup", "foregroundDeletion", "unknown"],
                "managedFields": [
                    {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
                    {"manager": "backup-controller", "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}, "v:\"catena.dev/backup\"": {}}}}},
                ],
            },
        }))
        .unwrap();
        let holders: Vec<_> = finalizers(&object).into_iter().map(|finalizer| finalizer.held_by).collect();
        assert_eq!(holders, [Some("backup-controller".into()), Some("kube-controller-manager".into()), None]);
    }
}
