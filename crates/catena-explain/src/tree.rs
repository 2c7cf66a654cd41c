//! Objects → the tree that their owner references make. Pure.

use std::collections::{HashMap, HashSet};

use catena_api::keys;
use catena_cluster::{Health, Identity, created, deleted, health, number, numbers, text};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
use kube::{ResourceExt, core::DynamicObject};
use operator_watch::ObjectId;
use serde::Serialize;

/// An object with its dependents.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its identity.
    #[serde(flatten)]
    pub identity: Identity,
    /// Its health.
    #[serde(flatten)]
    pub health: Health,
    /// The numbers of serving and of desired replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<String>,
    /// Its creation time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// Its deletion time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Timestamp>,
    /// Its revision: a number, or the start of a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The finalizers that hold it when it is deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<Finalizer>,
    /// Whether it names the object above without being owned by it: a command that is not bound yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unbound: bool,
    /// Its dependents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
    /// The object itself.
    #[serde(skip)]
    pub object: DynamicObject,
}

/// A finalizer of an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finalizer {
    /// Its name.
    pub name: String,
    /// The field manager that set it, if known; who removes it may be another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}

/// The tree below the object with a uid; none when that object is not among them.
#[must_use]
pub fn grow(top: &str, objects: &[DynamicObject]) -> Option<Node> {
    let top = objects.iter().find(|object| ObjectId::of(*object).uid == top)?;
    let mut used = HashSet::from([ObjectId::of(top).uid]);
    let mut index = Index::default();
    for object in objects {
        let owners = object.owner_references().iter().map(|owner| owner.uid.as_str());
        for owner in owners.chain(labelled_target(object)) {
            index.owned.entry(owner).or_default().push(object);
        }
        if let Some(named) = target(object).filter(|_| object.owner_references().is_empty()) {
            index.unbound.push((named, object));
        }
    }
    Some(node(top, false, &index, &mut used))
}

/// Objects by what they belong to: a chain may have thousands.
#[derive(Default)]
struct Index<'o> {
    /// By the uid of an owner, or of the target of a bound command.
    owned: HashMap<&'o str, Vec<&'o DynamicObject>>,
    /// Commands that may have only the name of a target.
    unbound: Vec<(Identity, &'o DynamicObject)>,
}

fn node<'o>(object: &DynamicObject, unbound: bool, index: &Index<'o>, used: &mut HashSet<&'o str>) -> Node {
    let owned = index.owned.get(ObjectId::of(object).uid).into_iter().flatten();
    let identity = Identity::of(object);
    let named = index.unbound.iter().filter(|(named, _)| identity.is_named_by(named));
    let mut below: Vec<(&DynamicObject, bool)> = owned
        .map(|other| (*other, false))
        .chain(named.map(|(_, command)| (*command, true)))
        .filter(|(other, _)| used.insert(ObjectId::of(*other).uid))
        .collect();
    below.sort_by_cached_key(|(other, _)| sort_key(other));
    let children = below.into_iter().map(|(other, unbound)| node(other, unbound, index, used)).collect();
    Node {
        identity,
        health: health(object),
        serving: numbers(object),
        created: created(&object.metadata),
        deleted: deleted(&object.metadata),
        revision: revision(object),
        finalizers: finalizers(object),
        unbound,
        children,
        object: object.clone(),
    }
}

/// Workloads, then commands, then history; each oldest first.
fn sort_key(object: &DynamicObject) -> (u8, String, Option<Timestamp>, Option<String>) {
    let identity = Identity::of(object);
    let rank = match identity.kind.as_str() {
        "ControllerRevision" => 2,
        _ if text(object, "/spec/targetRef/name").is_some() => 1,
        _ => 0,
    };
    (rank, identity.kind, created(&object.metadata), object.metadata.name.clone())
}

/// The uid of the target of a command that is bound by a label alone.
pub fn labelled_target(object: &DynamicObject) -> Option<&str> {
    object.labels().get(keys::TARGET_UID).map(String::as_str)
}

/// The target of a command of ours, in its own namespace: its kind gives the kind of the target, and its reference the name.
pub fn target(command: &DynamicObject) -> Option<Identity> {
    const TARGET: &str = "BasicDeployment";
    let name = text(command, "/spec/targetRef/name")?.to_owned();
    let identity = Identity::of(command);
    let is_ours = identity.group() == keys::GROUP && identity.kind.starts_with(TARGET);
    let namespace = text(command, "/spec/targetRef/namespace");
    let is_near = namespace.is_none_or(|namespace| identity.namespace.as_deref() == Some(namespace));
    (is_ours && is_near).then(|| Identity { kind: TARGET.to_owned(), name, uid: String::new(), ..identity })
}

fn revision(object: &DynamicObject) -> Option<String> {
    let annotation = |key: &str| object.annotations().get(key).cloned();
    let short = |hash: String| hash.chars().take(8).collect();
    number(object, "/status/revision")
        .or_else(|| number(object, "/revision"))
        .map(|revision| revision.to_string())
        .or_else(|| annotation("deployment.kubernetes.io/revision"))
        .or_else(|| annotation(keys::HASH).map(short))
}

impl Node {
    /// It and everything below it, from the top.
    #[must_use]
    pub fn all(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        Box::new(std::iter::once(self).chain(self.children.iter().flat_map(Self::all)))
    }

    /// The object with a uid.
    #[must_use]
    pub fn find(&self, uid: &str) -> Option<&Self> {
        self.all().find(|node| node.identity.uid == uid)
    }
}

/// The finalizers of an object.
fn finalizers(object: &DynamicObject) -> Vec<Finalizer> {
    let names = object.metadata.finalizers.iter().flatten();
    names.map(|name| Finalizer { name: name.clone(), held_by: holder(object, name) }).collect()
}

/// The manager of the entry, as recorded by the server.
fn holder(object: &DynamicObject, finalizer: &str) -> Option<String> {
    if matches!(finalizer, "foregroundDeletion" | "orphan") {
        return Some("kube-controller-manager".to_owned());
    }
    let entry = format!("v:{finalizer:?}");
    let owns = |fields: &FieldsV1| fields.0["f:metadata"]["f:finalizers"].get(&entry).is_some();
    let mut managed = object.managed_fields().iter();
    managed.find(|managed| managed.fields_v1.as_ref().is_some_and(owns))?.manager.clone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_of_another_namespace_is_no_target() {
        let named = |namespace: &str| {
            let command = json!({
                "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeploymentRestart",
                "metadata": {"name": "r1", "namespace": "shop"},
                "spec": {"targetRef": {"name": "web", "namespace": namespace}},
            });
            target(&serde_json::from_value(command).unwrap()).map(|target| target.name)
        };
        assert_eq!([named("shop"), named("other")], [Some("web".to_owned()), None]);
    }

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
