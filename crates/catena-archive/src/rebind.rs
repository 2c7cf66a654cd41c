//! Ties objects to the new uids of others. Pure.

use std::collections::{HashMap, HashSet};

use catena_api::{Pin, backup::VOLUME_BINDING, keys};
use catena_cluster::Identity;
use replica_contract::revision_name;
use serde_json::Value;

use super::Manifest;

/// The prefix of the labels and annotations whose values may be uids.
const OUR_MARKS: &str = "catena.dev/";
/// The parts of an object that may hold uids, by JSON pointers: other parts, such as the data of a revision, are content.
const WITH_UIDS: [&str; 3] = ["/metadata/labels", "/metadata/annotations", "/spec"];
/// The type of Secrets whose content Kubernetes writes.
pub const TOKEN: &str = "kubernetes.io/service-account-token";
/// The annotation of such a Secret with the uid of its `ServiceAccount`.
pub const TOKEN_UID: &str = "kubernetes.io/service-account.uid";

/// The uids of live objects, by the uids that they had in the backup.
#[derive(Clone, Debug, Default)]
pub struct Uids {
    new: HashMap<String, String>,
    /// All uids of the backup.
    known: HashSet<String>,
}

impl Uids {
    /// No object of the backup is there yet.
    pub fn of(manifests: &[Manifest]) -> Self {
        let known = manifests.iter().map(|manifest| manifest.identity().uid).collect();
        Self { new: HashMap::new(), known }
    }

    /// An object is there.
    pub fn insert(&mut self, old: &str, new: &str) {
        self.new.insert(old.to_owned(), new.to_owned());
    }

    /// Whether an object is in the backup.
    pub fn knows(&self, old: &str) -> bool {
        self.known.contains(old)
    }

    /// The new uid of an object.
    pub fn get(&self, old: &str) -> Option<&str> {
        self.new.get(old).map(String::as_str)
    }

    /// The object to create, with these owners, or to give a live one the content of. The uid of an object that is not there yet is
    /// left out of a new one.
    pub fn bound(&self, manifest: &Manifest, owners: &[Value], is_live: bool) -> Value {
        let mut object = manifest.object().clone();
        let name = self.name(manifest);
        unbind(&mut object);
        for part in WITH_UIDS {
            object.pointer_mut(part).into_iter().for_each(|part| self.bind(part, is_live));
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|field, _| matches!(field.as_str(), "namespace" | "labels" | "annotations"));
            metadata.insert("name".to_owned(), name.into());
            if !owners.is_empty() {
                metadata.insert("ownerReferences".to_owned(), owners.into());
            }
        }
        if let Some(pin) = self.pin(manifest) {
            object["metadata"]["annotations"][keys::PINNED_REVISION] = pin.into();
        }
        object
    }

    /// Gives each uid of the backup its new value: in a mark of ours, and in a field that is called so.
    fn bind(&self, part: &mut Value, is_live: bool) {
        match part {
            Value::Object(fields) => fields.retain(|key, value| {
                let is_uid = key.starts_with(OUR_MARKS) || key.to_ascii_lowercase().ends_with("uid");
                let Some(old) = value.as_str().filter(|old| is_uid && self.known.contains(*old)) else {
                    self.bind(value, is_live);
                    return true;
                };
                let new = self.get(old).map(Value::from);
                new.map(|new| *value = new).is_some() || is_live
            }),
            Value::Array(items) => items.iter_mut().for_each(|item| self.bind(item, is_live)),
            _ => {}
        }
    }

    /// The new object, with the uid of the former one.
    pub fn identity(&self, manifest: &Manifest) -> Identity {
        Identity { name: self.name(manifest), ..manifest.identity() }
    }

    /// The name of the new object: that of a stored revision follows from the uid of its `BasicDeployment`, and any other
    /// name stays.
    fn name(&self, manifest: &Manifest) -> String {
        let name = manifest.identity().name;
        if manifest.identity().kind != "ControllerRevision" {
            return name;
        }
        let Some(hash) = manifest.mark(keys::HASH) else { return name };
        let owners = manifest.owners();
        let owner = owners.iter().find(|owner| revision_name(&owner.name, &owner.uid, hash) == name);
        let new = owner.and_then(|owner| Some(revision_name(&owner.name, self.get(&owner.uid)?, hash)));
        new.unwrap_or(name)
    }

    /// The pin of a `BasicDeployment`, for the new one; `None` if it has none of its own.
    pub fn pin(&self, manifest: &Manifest) -> Option<String> {
        let pin: Pin = serde_json::from_str(manifest.mark(keys::PINNED_REVISION)?).ok()?;
        let old = manifest.identity().uid;
        let uid = self.get(&old).filter(|_| pin.uid == old)?.to_owned();
        Some(Pin { uid, ..pin }.to_json())
    }

    /// The record of who applied which fields: keys of lists contain uids of owners.
    pub fn managed_fields(&self, manifest: &Manifest) -> Option<Value> {
        let mut text = manifest.managed_fields()?.to_string();
        for owner in manifest.owners() {
            if let Some(new) = self.get(&owner.uid) {
                text = text.replace(&owner.uid, new);
            }
        }
        serde_json::from_str(&text).ok()
    }
}

/// Leaves out by which Kubernetes would take an object for that of another one: it would delete the disk of a volume whose claim
/// is gone or has another volume, and a token whose `ServiceAccount` is another one. It makes both anew, by names.
fn unbind(object: &mut Value) {
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !VOLUME_BINDING.contains(&key.as_str()) && key != TOKEN_UID);
    }
    if let Some(claim) = object.pointer_mut("/spec/claimRef").and_then(Value::as_object_mut) {
        claim.retain(|field, _| !["uid", "resourceVersion"].contains(&field.as_str()));
    }
    // The status is written by a request of its own, or by its controller.
    let is_token = object["type"] == TOKEN;
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|field, _| field != "status" && !(is_token && field == "data"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{create::over, manifest::tests::manifest};

    fn uids(manifests: &[Manifest]) -> Uids {
        let mut uids = Uids::of(manifests);
        uids.insert("uid-of-web", "new-web");
        uids
    }

    #[test]
    fn marks_of_ours_hold_the_new_uids_and_nothing_else_is_changed() {
        let web = manifest("BasicDeployment", "web", &json!({}));
        let gone = manifest("BasicDeploymentRestart", "gone", &json!({}));
        let set = manifest(
            "BasicReplicaSet",
            "set",
            &json!({
                "labels": {keys::DEPLOYMENT_UID: "uid-of-web", "team": "uid-of-web"},
                "annotations": {keys::BOUND_TO: "uid-of-gone", keys::MADE_FOR: "reaped"},
            }),
        );
        let bound = uids(&[web, gone, set.clone()]).bound(&set, &[json!({"uid": "new-web"})], false);
        assert_eq!(
            bound["metadata"],
            json!({
                "namespace": "shop", "name": "set", "ownerReferences": [{"uid": "new-web"}],
                "labels": {keys::DEPLOYMENT_UID: "new-web", "team": "uid-of-web"},
                // An unknown uid is harmless; one of an object that is not there would point nowhere.
                "annotations": {keys::MADE_FOR: "reaped"},
            })
        );
    }

    #[test]
    fn what_kubernetes_makes_for_an_object_is_not_taken_for_that_of_the_former_one() {
        let labels = json!({"batch.kubernetes.io/controller-uid": "uid-of-dump", "job-name": "dump"});
        let spec = json!({"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}});
        let job = manifest("Job", "dump", &json!({"labels": labels, "spec": spec}));
        let bound = uids(std::slice::from_ref(&job)).bound(&job, &[], false);
        let live = uids(std::slice::from_ref(&job)).bound(&job, &[], true);
        assert_eq!(live.pointer("/spec/selector/matchLabels"), Some(&labels), "it may be the same Job");
        let own = json!({"job-name": "dump"});
        for place in ["/metadata/labels", "/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
            assert_eq!(bound.pointer(place), Some(&own), "{place}");
        }
        let account = manifest("ServiceAccount", "web", &json!({}));
        let annotations = json!({"kubernetes.io/service-account.uid": "uid-of-web", "kubernetes.io/service-account.name": "web"});
        let token = json!({"type": TOKEN, "annotations": annotations, "data": {"token": "b2xk"}});
        let token = manifest("Secret", "token", &token);
        let uids = uids(&[account, token.clone()]);
        let bound = uids.bound(&token, &[], false);
        let annotations = json!({"kubernetes.io/service-account.name": "web"});
        assert_eq!((&bound["metadata"]["annotations"], bound.get("data")), (&annotations, None), "{bound}");
        let live = json!({"data": {"token": "bmV3"}});
        assert_eq!(over(&live, bound)["data"], live["data"], "it may be in use");
    }

    #[test]
    fn a_pin_holds_the_new_object_if_it_held_the_old_one() {
        let pin = |uid: &str| Pin { uid: uid.into(), hash: "good".into(), rejects: "bad".into() }.to_json();
        let pinned = |by: &str| {
            let annotations = json!({keys::PINNED_REVISION: pin(by)});
            manifest("BasicDeployment", "web", &json!({"annotations": annotations}))
        };
        let (own, copied) = (pinned("uid-of-web"), pinned("uid-of-another"));
        assert_eq!(uids(std::slice::from_ref(&own)).pin(&own), Some(pin("new-web")));
        assert_eq!(uids(std::slice::from_ref(&copied)).pin(&copied), None);
    }

    #[test]
    fn a_revision_has_the_name_under_which_its_controller_looks_for_it() {
        let owner = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "uid-of-web"});
        let of = |name: &str| {
            manifest(
                "ControllerRevision",
                name,
                &json!({
                    "apiVersion": "apps/v1", "annotations": {keys::HASH: "h"}, "ownerReferences": [owner],
                }),
            )
        };
        let own = of(&revision_name("web", "uid-of-web", "h"));
        let uids = uids(std::slice::from_ref(&own));
        assert_eq!(uids.name(&own), revision_name("web", "new-web", "h"));
        assert_eq!(uids.name(&of("db-57f8")), "db-57f8");
    }

    #[test]
    fn the_record_of_applied_fields_names_the_new_owner() {
        let owner = json!({"apiVersion": "v1", "kind": "X", "name": "web", "uid": "uid-of-web"});
        let fields = json!({"f:metadata": {"f:ownerReferences": {"k:{\"uid\":\"uid-of-web\"}": {}}}});
        let set = manifest(
            "BasicReplicaSet",
            "set",
            &json!({
                "ownerReferences": [owner],
                "managedFields": [{"manager": "c", "operation": "Apply", "fieldsV1": fields}],
            }),
        );
        let managed = uids(std::slice::from_ref(&set)).managed_fields(&set).unwrap().to_string();
        assert!(managed.contains("new-web") && !managed.contains("uid-of-web"), "{managed}");
    }
}
