//! A namespace or a definition that is deleted and still has contents, and an object in such a namespace: it goes as well, and
//! nothing can be created for it.

use catena_api::keys;
use catena_cluster::{Identity, condition, text};
use jiff::Timestamp;

use super::{Cause, Facts, objects};
use crate::chain::Node;

/// The conditions of a namespace that report why its deletion has not finished.
const OF_NAMESPACES: [&str; 5] = [
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
    "NamespaceDeletionContentFailure",
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
];

/// The word for an object whose namespace is being deleted.
pub const TERMINATING: &str = "NamespaceTerminating";

/// Whether objects of a kind contain others, which are deleted before them.
pub fn is_container(identity: &Identity) -> bool {
    matches!(
        (identity.group(), identity.kind.as_str()),
        ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

/// Whether an object is inside a deleted namespace, or of the kind of a deleted definition.
pub fn contains(container: &Node, object: &Identity) -> bool {
    let text = |pointer: &str| text(&container.object, pointer).unwrap_or_default();
    match container.identity.kind.as_str() {
        "Namespace" => object.namespace.as_ref() == Some(&container.identity.name),
        _ => object.kind == text("/spec/names/kind") && object.group() == text("/spec/group"),
    }
}

/// The resources of which objects are left, such as `configmaps.` or `widgets.example.com`.
pub fn resources_left(container: &Node) -> Vec<String> {
    if container.identity.kind != "Namespace" {
        return vec![container.identity.name.clone()];
    }
    let said = messages(container, &["NamespaceContentRemaining"]).unwrap_or_default();
    let Some((_, list)) = said.split_once(": ") else { return Vec::new() };
    let names = list.split(", ").filter_map(|item| item.split(" has ").next());
    names.map(|name| name.trim_end_matches('.').to_owned()).collect()
}

/// The contents that a deleted namespace or definition waits for, as its own conditions report them.
pub fn remaining(node: &Node, since: Timestamp) -> Option<Cause> {
    let identity = &node.identity;
    let (meaning, message, advice) = match (identity.group(), identity.kind.as_str()) {
        ("", "Namespace") => {
            let message = messages(node, &OF_NAMESPACES).unwrap_or_default();
            if message.is_empty() && !node.finalizers.is_empty() {
                return None;
            }
            let advice = if message.is_empty() {
                "ask again in some seconds: the namespace then names its remaining contents".to_owned()
            } else {
                of_namespace(&identity.name, &message)
            };
            ("is being deleted, and waits for its contents", message, advice)
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let message = messages(node, &["Terminating"])?;
            let advice = format!(
                "kubectl get {0} --all-namespaces lists them, and kubectl catena why {0}/NAME explains each; \
                 kubectl catena held --all-namespaces lists those that wait for a backup",
                identity.name
            );
            ("is being deleted, and waits for the objects of its kind", message, advice)
        }
        _ => return None,
    };
    let cause = Cause::with(identity, "ContentsRemain").meaning(meaning).advice(advice);
    Some(cause.message(message).since(Some(since)))
}

fn of_namespace(name: &str, message: &str) -> String {
    if message.contains(keys::BACKUP_FINALIZER) {
        return format!(
            "kubectl catena held --namespace {name} --all-kinds lists the objects that wait for a backup, and why"
        );
    }
    "look at the named objects: kubectl catena why explains each; a finalizer is removed by the controller that set it, \
     which has to run"
        .to_owned()
}

/// The messages of those conditions that are true.
fn messages(node: &Node, types: &[&str]) -> Option<String> {
    let of_type = |type_: &&str| {
        let found = condition(&node.object, type_).filter(|found| found.status == "True")?;
        Some(found.message.trim_end_matches('.').to_owned())
    };
    let messages: Vec<String> = types.iter().filter_map(of_type).collect();
    (!messages.is_empty()).then(|| messages.join("; "))
}

/// The cause of an object that is not deleted yet, while its namespace is.
pub fn in_terminating_namespace(node: &Node, facts: &Facts) -> Option<Cause> {
    let namespace = facts.surroundings.namespace.as_ref()?;
    let is_inside = node.identity.namespace.as_ref() == Some(&namespace.identity.name);
    if !is_inside || objects::has_ended(node) || node.deleted.is_some() {
        return None;
    }
    let since = namespace.deleted?;
    let message = remaining(namespace, since).map(|cause| cause.message).unwrap_or_default();
    let meaning = "is being deleted with everything in it, and accepts no new objects";
    let cause = Cause::with(&namespace.identity, TERMINATING).meaning(meaning).message(message);
    Some(cause.since(namespace.deleted))
}
