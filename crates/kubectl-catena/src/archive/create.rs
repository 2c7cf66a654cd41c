//! The requests of a restoration. Each can be repeated after a crash: an object that a restoration creates records the uid of
//! the object whose place it takes in the name of its field manager, until it is complete.

use kube::{Resource, core::DynamicObject};
use operator_kit::watch::live;
use serde_json::{Value, json};

use crate::{connection::Cluster, kinds::Kind};

/// Begins the name of the field manager.
const MANAGER: &str = "kubectl-catena-restore";

/// A live object with its kind.
pub struct Live<'l> {
    /// The connection.
    pub cluster: &'l Cluster,
    /// Its kind.
    pub kind: &'l Kind,
    /// Its namespace.
    pub namespace: Option<&'l str>,
    /// Its name.
    pub name: &'l str,
}

impl Live<'_> {
    fn url(&self) -> String {
        let namespace = self.namespace.filter(|_| self.kind.is_namespaced);
        format!("{}/{}", DynamicObject::url_path(&self.kind.resource, namespace), self.name)
    }

    /// The object, if it is there.
    pub async fn get(&self) -> kube::Result<Option<Value>> {
        live::check_names(self.namespace, self.name)?;
        match self.send(http::Request::get(self.url()), Vec::new()).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates it in the place of an object of the backup; a field that the server does not know is an error.
    pub async fn create(&self, object: &Value, in_place_of: &str) -> kube::Result<Value> {
        live::check_names(self.namespace, self.name)?;
        let namespace = self.namespace.filter(|_| self.kind.is_namespaced);
        let url = DynamicObject::url_path(&self.kind.resource, namespace);
        let url = format!("{url}?fieldValidation=Strict&fieldManager={}", manager(in_place_of));
        let request = http::Request::post(url).header("content-type", "application/json");
        self.send(request, object.to_string().into_bytes()).await
    }

    /// Replaces what its authors wrote.
    pub async fn replace(&self, live: &Value, object: &Value) -> kube::Result<Value> {
        let mut replaced = object.clone();
        for field in ["uid", "resourceVersion", "ownerReferences", "finalizers"] {
            if let Some(value) = live["metadata"].get(field) {
                replaced["metadata"][field] = value.clone();
            }
        }
        let url = format!("{}?fieldValidation=Strict&fieldManager=kubectl-catena", self.url());
        let request = http::Request::put(url).header("content-type", "application/json");
        self.send(request, replaced.to_string().into_bytes()).await
    }

    /// Writes the status of exactly this object.
    pub async fn write_status(&self, uid: &str, status: &Value) -> kube::Result<Value> {
        let patch = json!({"metadata": {"uid": uid}, "status": status});
        self.patch(&format!("{}/status", self.url()), &patch).await
    }

    /// Changes exactly this object.
    pub async fn merge(&self, uid: &str, patch: &Value) -> kube::Result<Value> {
        let mut patch = patch.clone();
        patch["metadata"]["uid"] = uid.into();
        self.patch(&self.url(), &patch).await
    }

    /// Deletes exactly this object.
    pub async fn delete(&self, uid: &str) -> kube::Result<()> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
        let request = http::Request::delete(self.url()).header("content-type", "application/json");
        match self.send(request, options.to_string().into_bytes()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    async fn patch(&self, url: &str, patch: &Value) -> kube::Result<Value> {
        let request = http::Request::patch(format!("{url}?fieldManager=kubectl-catena"))
            .header("content-type", "application/merge-patch+json");
        self.send(request, patch.to_string().into_bytes()).await
    }

    async fn send(&self, request: http::request::Builder, body: Vec<u8>) -> kube::Result<Value> {
        self.cluster.client.request(request.body(body).map_err(kube::Error::HttpError)?).await
    }
}

fn manager(in_place_of: &str) -> String {
    // A uid has no other characters; what a file holds may have.
    let uid = in_place_of.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(64);
    format!("{MANAGER}-{}", uid.collect::<String>())
}

/// Whether a live object was created in the place of an object of the backup, and is not complete yet.
pub fn is_incomplete(live: &Value, in_place_of: &str) -> bool {
    let managers = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    let manager = manager(in_place_of);
    managers.into_iter().any(|entry| entry["manager"] == manager.as_str())
}

/// Hands the fields of a created object over to those who applied them before, or to nobody: otherwise a field that they leave
/// out later would stay. It also completes the object. Others, such as those who write its status, keep their fields.
pub fn handed_over(live: &Value, in_place_of: &str, saved: Option<Value>) -> Value {
    let manager = manager(in_place_of);
    let present = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    let others = present.filter(|entry| entry["manager"] != manager.as_str()).cloned();
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
        let live = json!({"metadata": {"managedFields": [{"manager": "kubectl-catena-restore-u1"}]}});
        assert!(is_incomplete(&live, "u1") && !is_incomplete(&live, "u2"));
        assert!(!is_incomplete(&json!({"metadata": {}}), "u1"));
        let status = json!({"manager": "controller", "operation": "Apply", "subresource": "status"});
        let live = json!({"metadata": {"managedFields": [{"manager": "kubectl-catena-restore-u1"}, status]}});
        let saved = json!({"manager": "flux", "operation": "Apply"});
        assert_eq!(handed_over(&live, "u1", Some(json!([saved]))), json!([status, saved]));
        assert_eq!(handed_over(&json!({}), "u1", None), json!([{}]));
        assert_eq!(manager("a&dryRun=All"), "kubectl-catena-restore-adryRunAll");
    }
}
