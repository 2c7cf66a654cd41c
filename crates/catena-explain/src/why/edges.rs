//! The edges of a graph beside its owner references: whom an object names in its spec and status, and what was found there.
//! Pure; `read` reads them.

use catena_api::keys;
use catena_cluster::{Identity, State, conditions, list, protection, text};
use jiff::Timestamp;
use serde_json::Value;

use super::{Cause, Facts, leaf, placement, warnings};
use crate::Node;

/// What an object is to the one that names it; the first ones are read first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// The object that a status names as its blocker.
    BlockedBy,
    /// The child of a former object that has the place of this one's child.
    OldChild,
    /// The backup that the deletion of an object waits for.
    Backup,
    /// The namespace in which a backup is to be made.
    BackupNamespace,
    /// The definition of a kind that is to be created.
    Definition,
    /// An object that a deleted namespace or definition waits for.
    Contents,
    /// A claim of a pod that was not scheduled because of its claims.
    Claim,
    /// The volume that a claim names, or the storage class that makes one.
    Volume,
    /// The node of a pod.
    Node,
    /// The node of a pod that is called ready.
    Host,
}

/// The objects that one names, and in which the cause of its state may lie.
pub fn edges(node: &Node) -> Vec<(Edge, Identity)> {
    let blocker = blocker(node).map(|(blocker, _)| (Edge::BlockedBy, blocker));
    let mut found = Vec::from_iter(blocker);
    if node.health.state.is_healthy() {
        found.extend(node_of(node).filter(|_| node.health.state == State::Ready).map(|on| (Edge::Host, on)));
        return found;
    }
    found.extend(namespace_of_backup(node).map(|namespace| (Edge::BackupNamespace, namespace)));
    found.extend(backup_of(node).map(|backup| (Edge::Backup, backup)));
    match (node.identity.group(), node.identity.kind.as_str()) {
        ("", "Pod") => {
            let on = node_of(node).filter(|_| node.health.state != State::Failed);
            found.extend(on.map(|on| (Edge::Node, on)));
            found.extend(claims_of(node).into_iter().map(|claim| (Edge::Claim, claim)));
        }
        _ if placement::is_unbound(node) => {
            found.extend(volume_of(node).or_else(|| class_of(node)).map(|from| (Edge::Volume, from)));
        }
        (keys::GROUP, "BasicDeployment") => found.extend(old_child(node).map(|old| (Edge::OldChild, old))),
        _ => {}
    }
    found
}

/// The objects that one names and that exist, and the cause if one that it needs does not.
pub fn follow<'n>(node: &Node, facts: &Facts<'n>) -> (Vec<&'n Node>, Option<Cause>) {
    let related = &facts.surroundings.related;
    let definition = terminating_kind(node).and_then(|kind| {
        related.found.iter().find(|found| text(&found.object, "/spec/names/kind") == Some(kind))
    });
    let (mut found, mut cause) = (Vec::from_iter(definition), None);
    let is_early = node.health.reason == "Starting" && leaf::is_new(node, facts);
    let is_idle = |claim: &Node| {
        let waits = || placement::unbound_claim(claim, facts).reason == placement::WAITS_FOR_POD;
        !placement::has_node(claim) && claim.deleted.is_none() && (!needs_nodes(node) || waits())
    };
    // What holds the place of its child goes, and belongs to another one.
    let goes_elsewhere = |old: &Node| {
        let mut owners = old.object.metadata.owner_references.iter().flatten();
        old.deleted.is_some() && owners.all(|owner| owner.uid != node.identity.uid)
    };
    for (edge, to) in edges(node) {
        match related.find(&to) {
            _ if edge == Edge::Host || edge == Edge::Claim && is_early => {}
            Some(old) if edge == Edge::OldChild && !goes_elsewhere(old) => {}
            Some(claim) if edge == Edge::Claim && is_idle(claim) => {}
            Some(there) => found.push(there),
            None if related.is_missing(&to) => cause = cause.or_else(|| missing(edge, &to, node, facts)),
            None => {}
        }
    }
    (found, cause)
}

fn missing(edge: Edge, to: &Identity, node: &Node, facts: &Facts) -> Option<Cause> {
    let of_pod = |cause: Cause| cause.message(&node.health.message).since(node.health.since);
    let of_claim = |cause: Cause| cause.message(warnings::message(node, facts)).since(node.created);
    Some(match edge {
        Edge::Node => {
            // Neither a scheduler nor a kubelet has seen it.
            let is_named =
                conditions(&node.object).is_empty() && text(&node.object, "/status/startTime").is_none();
            let case = if is_named { "unknown node" } else { "missing node" };
            of_pod(Cause::with(&node.identity, "NodeGone").in_case(case, &[("{node}", &to.to_string())]))
        }
        Edge::Claim => of_pod(Cause::with(to, "ClaimMissing")),
        Edge::Volume if to.kind == "StorageClass" => of_claim(Cause::with(to, "ClassMissing")),
        Edge::Volume => of_claim(Cause::with(to, "VolumeMissing")),
        _ => return None,
    })
}

/// The blocker that a status names, and what it says about it; also where another project has not all fields of ours.
pub fn blocker(node: &Node) -> Option<(Identity, Cause)> {
    let text = |field: &str| text(&node.object, &format!("/status/blockedBy/{field}")).unwrap_or_default();
    let namespace = node.identity.namespace.as_deref();
    let object = Identity::new(text("apiVersion"), text("kind"), namespace, text("name"));
    let is_itself = node.identity.is_named_by(&object);
    let object = if is_itself { node.identity.clone() } else { object };
    let since = text("since").parse().ok().or(node.health.since.filter(|_| is_itself));
    let is_named = !object.kind.is_empty() && !object.name.is_empty();
    let cause = Cause::reported(&object, text("reason"), text("message")).since(since);
    is_named.then_some((object, cause))
}

/// When what a status reports as failed is tried again, in the words of its controller, if that is not over.
pub fn next_retry(node: &Node, now: Timestamp) -> Option<String> {
    let (_, told) = node.health.message.split_once("; it is retried ")?;
    let at = text(&node.object, "/status/blockedBy/nextRetry").and_then(|at| at.parse::<Timestamp>().ok());
    let told = told.split(';').next().filter(|_| at.is_none_or(|at| at > now))?;
    Some(format!("; it is retried {told}"))
}

/// The node that a pod was scheduled to.
pub fn node_of(pod: &Node) -> Option<Identity> {
    text(&pod.object, "/spec/nodeName").map(|name| Identity::new("v1", "Node", None, name))
}

/// The claims of a pod that waits for them: once it has a node, they are bound. The scheduler says nothing while it waits for
/// the volumes of those for which it selected a node.
pub fn claims_of(pod: &Node) -> Vec<Identity> {
    let says = pod.health.message.to_lowercase();
    let waits = match pod.health.reason.as_str() {
        "Unschedulable" => says.contains("volume"),
        reason => matches!(reason, "Starting" | "SchedulerError"),
    };
    if !waits || node_of(pod).is_some() {
        return Vec::new();
    }
    let names = list(&pod.object, "/spec/volumes").filter_map(|volume| {
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

/// The volume that a claim names.
pub fn volume_of(claim: &Node) -> Option<Identity> {
    text(&claim.object, "/spec/volumeName").map(|name| Identity::new("v1", "PersistentVolume", None, name))
}

/// The child of a former BasicDeployment of the same name: as the message names it, or by its usual name before there
/// is a message.
fn old_child(node: &Node) -> Option<Identity> {
    let Identity { namespace, name, .. } = &node.identity;
    let (kind, name) = match (node.health.reason.as_str(), node.health.state) {
        ("FormerChildLeaving", _) => {
            let (kind, rest) = node.health.message.split_once(" \"")?;
            (kind, rest.split_once('"')?.0)
        }
        (_, State::Unreported) => ("BasicReplicaSet", name.as_str()),
        _ => return None,
    };
    Some(Identity::new("", kind, namespace.as_deref(), name))
}

/// Whether the nodes of the cluster may explain the state of an object.
pub fn needs_nodes(node: &Node) -> bool {
    node.identity.kind == "Pod" && node.health.reason == "Unschedulable"
}

/// The kind whose definition is being deleted, so that a write was refused: in the words of the controller.
pub fn terminating_kind(node: &Node) -> Option<&str> {
    let said = Some(&node.health).filter(|said| said.reason == "DefinitionTerminating")?;
    said.message.split_once("the CustomResourceDefinition of ")?.1.split_whitespace().next()
}

/// The namespace in which the API server refuses a backup: it may not exist, or be about to go.
pub fn namespace_of_backup(node: &Node) -> Option<Identity> {
    let report = protection::report(&node.object.metadata);
    let is_refused = matches!(report["reason"].as_str(), Some("Forbidden" | "NamespaceTerminating"));
    let message = report["message"].as_str().filter(|_| node.deleted.is_some() && is_refused)?;
    let (_, rest) = message.split_once("the namespace \"")?;
    Some(Identity::new("v1", "Namespace", None, rest.split_once('"')?.0))
}

/// The backup that the report on a held object names.
pub fn backup_of(node: &Node) -> Option<Identity> {
    let report = protection::report(&node.object.metadata);
    let (kind, place) = report["backup"].as_str().filter(|_| node.deleted.is_some())?.split_once(' ')?;
    let (namespace, name) = place.split_once('/').map_or((None, place), |(of, name)| (Some(of), name));
    Some(Identity::new("", kind, namespace, name))
}
