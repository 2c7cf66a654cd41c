//! An object in a namespace that is being deleted: it goes as well, and nothing can be created for it.

use jiff::Timestamp;

use super::{
    answer::{Cause, Finding},
    contents,
    facts::Facts,
};
use crate::chain::{Node, State};

/// The word for an object whose namespace is being deleted.
pub const TERMINATING: &str = "NamespaceTerminating";

/// An object that is not deleted yet, while its namespace is.
pub fn check<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Finding<'n>> {
    let namespace = facts.surroundings.namespace.as_ref()?;
    let is_inside = node.identity.namespace.as_ref() == Some(&namespace.identity.name);
    let is_over = matches!(node.health.state, State::Done | State::Failed);
    if !is_inside || is_over || node.deleted.is_some() {
        return None;
    }
    let since = namespace.deleted?;
    Some(Finding { cause: cause(namespace, since), path: vec![node, namespace] })
}

fn cause(namespace: &Node, since: Timestamp) -> Cause {
    let message = contents::remaining(namespace, since).map(|cause| cause.message).unwrap_or_default();
    let meaning = "is being deleted with everything in it, and accepts no new objects";
    Cause::with(&namespace.identity, TERMINATING).meaning(meaning).message(message).since(Some(since))
}
