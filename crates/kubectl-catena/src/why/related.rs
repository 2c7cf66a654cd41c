//! Objects beside a chain in which the cause may lie: the node of a pod, its volumes, a former child, a definition, and
//! the contents that a deleted namespace or definition waits for. Pure; `relate` reads them.

use catena_api::keys;
use serde_json::Value;

use super::{contents, deletion::namespace_of_backup};
use crate::{
    chain::{Node, State},
    object::{Identity, text},
};

/// Objects beside a chain.
#[derive(Debug, Default)]
pub struct Related {
    /// Those that exist.
    pub found: Vec<Node>,
    /// Those that are named and do not exist.
    pub missing: Vec<Identity>,
    /// The nodes of the cluster, if a pod has found none.
    pub nodes: Vec<Node>,
    /// Contents that a deleted namespace or definition waits for.
    pub contents: Vec<Node>,
}

impl Related {
    /// An object that exists.
    pub fn find(&self, wanted: &Identity) -> Option<&Node> {
        self.found.iter().find(|node| is_same(&node.identity, wanted))
    }

    /// Whether an object is known not to exist.
    pub fn is_missing(&self, wanted: &Identity) -> bool {
        self.missing.iter().any(|missing| is_same(missing, wanted))
    }

    /// Whether an object has been looked for.
    pub fn knows(&self, wanted: &Identity) -> bool {
        self.find(wanted).is_some() || self.is_missing(wanted)
    }

    /// The child of a former object that has the place of this one's child.
    pub fn former_child(&self, node: &Node) -> Option<&Node> {
        former_child(node).into_iter().find_map(|wanted| {
            let left = self.find(&wanted)?;
            let is_ours = left
                .object
                .metadata
                .owner_references
                .iter()
                .flatten()
                .any(|owner| owner.uid == node.identity.uid);
            (left.deleted.is_some() && !is_ours).then_some(left)
        })
    }
}

/// Each kind is read in one version.
fn is_same(one: &Identity, other: &Identity) -> bool {
    (one.group(), &one.kind, &one.namespace, &one.name)
        == (other.group(), &other.kind, &other.namespace, &other.name)
}

/// The objects that may explain the state of this one.
pub fn wanted(node: &Node) -> Vec<Identity> {
    if node.deleted.is_none() && node.health.state.is_healthy() {
        return Vec::new();
    }
    if let Some(namespace) = namespace_of_backup(node) {
        return vec![namespace];
    }
    match (node.identity.group(), node.identity.kind.as_str()) {
        ("", "Pod") => node_of(node).into_iter().chain(claims_of(node)).collect(),
        ("", "PersistentVolumeClaim") => class_of(node).into_iter().collect(),
        (keys::GROUP, "BasicDeployment") => former_child(node).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The node that a pod was scheduled to.
pub fn node_of(pod: &Node) -> Option<Identity> {
    text(&pod.object, "/spec/nodeName").map(|name| Identity::new("v1", "Node", None, name))
}

/// The claims of a pod without a node: once it has one, they are bound.
pub fn claims_of(pod: &Node) -> Vec<Identity> {
    if node_of(pod).is_some() {
        return Vec::new();
    }
    let volumes = pod.object.data.pointer("/spec/volumes").and_then(Value::as_array);
    let names = volumes.into_iter().flatten().filter_map(|volume| {
        if let Some(name) = volume.pointer("/persistentVolumeClaim/claimName").and_then(Value::as_str) {
            return Some(name.to_owned());
        }
        let volume = volume.get("ephemeral").and(volume["name"].as_str())?;
        Some(format!("{}-{volume}", pod.identity.name))
    });
    let namespace = pod.identity.namespace.as_deref();
    names.map(|name| Identity::new("v1", "PersistentVolumeClaim", namespace, &name)).collect()
}

/// The class that provides for a claim.
pub fn class_of(claim: &Node) -> Option<Identity> {
    text(&claim.object, "/spec/storageClassName")
        .map(|name| Identity::new("storage.k8s.io/v1", "StorageClass", None, name))
}

/// The child of a former BasicDeployment of the same name: as the message names it, or by its usual name before there
/// is a message.
fn former_child(node: &Node) -> Option<Identity> {
    let namespace = node.identity.namespace.as_deref();
    let version = &node.identity.api_version;
    match (node.health.reason.as_str(), node.health.state) {
        ("FormerChildLeaving", _) => {
            let (kind, rest) = node.health.message.split_once(" \"")?;
            let (name, _) = rest.split_once('"')?;
            Some(Identity::new(version, kind, namespace, name))
        }
        (_, State::Unreported) if node.identity.kind == "BasicDeployment" => {
            Some(Identity::new(version, "BasicReplicaSet", namespace, &node.identity.name))
        }
        _ => None,
    }
}

/// Whether the nodes of the cluster may explain the state of an object.
pub fn needs_nodes(node: &Node) -> bool {
    node.identity.kind == "Pod" && node.health.reason == "Unschedulable"
}

/// The kind whose definition is being deleted, so that a write was refused: in the words of the controller.
pub fn terminating_kind(node: &Node) -> Option<&str> {
    if node.health.reason != "DefinitionTerminating" {
        return None;
    }
    let (_, rest) = node.health.message.split_once("the CustomResourceDefinition of ")?;
    rest.split_whitespace().next()
}

/// Whether the contents of an object explain its state.
pub fn needs_contents(node: &Node) -> bool {
    node.deleted.is_some() && contents::is_container(&node.identity)
}
