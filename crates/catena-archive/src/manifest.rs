//! An object in the form of a backup: what its authors wrote, and what ties it to others. Pure.

use catena_api::{backup::OF_A_DELETION, command::SUCCEEDED, keys};
use catena_cluster::Identity;
use serde_json::Value;

/// The kept metadata. The uid and the owners tell which objects belonged together; the time gives commands their order.
const KEPT_METADATA: [&str; 8] = [
    "name",
    "namespace",
    "labels",
    "annotations",
    "uid",
    "ownerReferences",
    "creationTimestamp",
    "managedFields",
];

/// An object of a backup.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest(Value);

impl Manifest {
    /// The form of a live object.
    pub fn of(object: Value) -> Self {
        let mut manifest = Self(object);
        let is_command = manifest.is_command();
        let object = &mut manifest.0;
        // Controllers write the status of everything else anew.
        if let Some(fields) = object.as_object_mut().filter(|_| !is_command) {
            fields.remove("status");
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|field, _| KEPT_METADATA.contains(&field.as_str()));
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.retain(|key, _| !OF_A_DELETION.contains(&key.as_str()));
            }
            let applied = applied(metadata.remove("managedFields").as_ref());
            if !applied.is_empty() {
                metadata.insert("managedFields".to_owned(), applied.into());
            }
            metadata.retain(|_, value| !matches!(value, Value::Object(map) if map.is_empty()));
        }
        manifest
    }

    /// An object as a file holds it; `None` if it does not say what it is.
    pub fn read(object: Value) -> Option<Self> {
        let manifest = Self(object);
        let Identity { api_version, kind, name, uid, .. } = manifest.identity();
        let is_whole = [api_version, kind, name, uid].iter().all(|text| !text.is_empty());
        is_whole.then_some(manifest)
    }

    /// The whole object.
    pub fn object(&self) -> &Value {
        &self.0
    }

    /// The text at a JSON pointer; empty if there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// What it is, with its uid at the time of the backup.
    pub fn identity(&self) -> Identity {
        let (version, kind) = (self.text("/apiVersion"), self.text("/kind"));
        let namespace = self.0["metadata"]["namespace"].as_str();
        let identity = Identity::new(version, kind, namespace, self.text("/metadata/name"));
        Identity { uid: self.text("/metadata/uid").to_owned(), ..identity }
    }

    /// Its owners at the time of the backup.
    pub fn owners(&self) -> Vec<Identity> {
        let namespace = self.identity().namespace;
        let owners = self.0["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        // Field by field: one of a wrong type must not hide who the owner is.
        let owner = |reference: &Value| {
            let text = |field: &str| reference[field].as_str().unwrap_or_default();
            let named = Identity::new(text("apiVersion"), text("kind"), namespace.as_deref(), text("name"));
            Identity { uid: text("uid").to_owned(), ..named }
        };
        owners.map(owner).collect()
    }

    /// The one of them that is its controller.
    pub fn controller(&self) -> Option<Identity> {
        let references = self.0["metadata"]["ownerReferences"].as_array()?;
        let place = references.iter().position(|reference| reference["controller"] == true)?;
        self.owners().into_iter().nth(place)
    }

    /// Whether command-binder has made a target one of its owners.
    pub fn is_bound(&self) -> bool {
        let target = self.0["metadata"]["annotations"][keys::BOUND_TO].as_str();
        self.owners().iter().any(|owner| Some(owner.uid.as_str()) == target)
    }

    /// A label or an annotation.
    pub fn mark(&self, key: &str) -> Option<&str> {
        let metadata = &self.0["metadata"];
        metadata["labels"][key].as_str().or_else(|| metadata["annotations"][key].as_str())
    }

    /// Whether it is a definition of a kind.
    pub fn is_definition(&self) -> bool {
        self.0["kind"] == "CustomResourceDefinition"
    }

    /// Whether it is a `BasicDeployment`, which can be paused until everything below it is there.
    pub fn is_deployment(&self) -> bool {
        let identity = self.identity();
        identity.group() == keys::GROUP && identity.kind == "BasicDeployment"
    }

    /// Whether it is a command.
    pub fn is_command(&self) -> bool {
        self.identity().group() == keys::GROUP && self.0["spec"]["targetRef"]["name"].is_string()
    }

    /// Whether it is a command that has ended.
    pub fn has_ended(&self) -> bool {
        let conditions = self.0["status"]["conditions"].as_array().into_iter().flatten();
        let mut outcome = conditions.filter(|condition| condition["type"] == SUCCEEDED);
        outcome.any(|condition| condition["status"] == "True" || condition["status"] == "False")
    }

    /// Whether it is a command that began to take effect.
    pub fn has_begun(&self) -> bool {
        !self.0["status"]["startTime"].is_null()
    }

    /// The record of who applied which fields.
    pub fn managed_fields(&self) -> Option<&Value> {
        self.0["metadata"].get("managedFields")
    }
}

/// The fields that somebody manages by server-side apply: without this record, a field that they leave out later would stay.
/// Times would only make noise.
fn applied(managed: Option<&Value>) -> Vec<Value> {
    let mut entries = managed.and_then(Value::as_array).cloned().unwrap_or_default();
    entries.retain(|entry| entry["operation"] == "Apply" && entry["subresource"].is_null());
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        entry.remove("time");
    }
    entries
}

/// Whether an object is being deleted.
pub fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    /// A manifest with this metadata and other fields.
    pub fn manifest(kind: &str, name: &str, more: &Value) -> Manifest {
        let mut object = json!({
            "apiVersion": "catena.dev/v1alpha1", "kind": kind,
            "metadata": {"namespace": "shop", "name": name, "uid": format!("uid-of-{name}")},
        });
        for (field, value) in more.as_object().unwrap() {
            match field.as_str() {
                "apiVersion" | "spec" | "status" | "data" | "type" => object[field.as_str()] = value.clone(),
                field => object["metadata"][field] = value.clone(),
            }
        }
        Manifest::of(object)
    }

    #[test]
    fn a_manifest_holds_what_authors_wrote_and_what_ties_objects_together() {
        let manifest = manifest(
            "BasicDeployment",
            "web",
            &json!({
                "spec": {"replicas": 3}, "status": {"ready": true}, "resourceVersion": "7", "generation": 2,
                "finalizers": ["catena.dev/backup"], "labels": {"a": "b"},
                "annotations": {keys::FORCE_RELEASE: "why"},
                "managedFields": [
                    {"manager": "flux", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {}}},
                    {"manager": "kubectl", "operation": "Update"},
                    {"manager": "controller", "operation": "Apply", "subresource": "status"},
                ],
            }),
        );
        let applied = json!([{"manager": "flux", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]);
        let metadata = json!({
            "namespace": "shop", "name": "web", "uid": "uid-of-web", "labels": {"a": "b"}, "managedFields": applied,
        });
        assert_eq!(manifest.object()["metadata"], metadata);
        assert!(manifest.object()["status"].is_null() && manifest.object()["spec"]["replicas"] == 3);
    }

    #[test]
    fn an_owner_is_known_although_one_field_of_the_reference_has_a_wrong_type() {
        let owner = json!({
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "u1", "controller": "true",
        });
        let manifest = manifest("BasicReplicaSet", "web", &json!({"ownerReferences": [owner]}));
        let named = Identity::new("catena.dev/v1alpha1", "BasicDeployment", Some("shop"), "web");
        assert_eq!(manifest.owners(), [Identity { uid: "u1".into(), ..named }]);
    }

    #[test]
    fn a_command_keeps_its_outcome() {
        let outcome = |status: &str| {
            let status = json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": SUCCEEDED, "status": status}]});
            manifest(
                "BasicDeploymentRestart",
                "again",
                &json!({"spec": {"targetRef": {"name": "web"}}, "status": status}),
            )
        };
        assert!(outcome("True").has_ended() && outcome("False").has_ended());
        assert!(!outcome("Unknown").has_ended() && outcome("Unknown").has_begun());
        assert!(outcome("True").is_command());
        let foreign =
            json!({"apiVersion": "x.dev/v1", "spec": {"targetRef": {"name": "web"}}, "status": {"a": 1}});
        assert!(!manifest("Restart", "again", &foreign).is_command());
    }
}
