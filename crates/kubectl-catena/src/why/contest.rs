//! Somebody who changes the child of a BasicDeployment again and again, so that it never comes to rest.

use catena_api::keys;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    answer::{Cause, Finding},
    command::is_waiting,
    facts::Facts,
    walk::path_to,
};
use crate::{
    chain::Node,
    object::{Identity, conditions},
};

/// The reason of an object whose controller has repeated a write too often.
pub const REASON: &str = "RepeatedWrites";

/// The contest about the asked object, or about the one above or below it.
pub fn check<'n>(facts: &Facts<'n>) -> Option<Finding<'n>> {
    let asked = facts.asked;
    // Neither a finished command nor a revision depends on it.
    if asked.serving.is_none() && !is_waiting(asked) {
        return None;
    }
    let concerned = facts
        .top
        .all()
        .filter(|node| node.find(&asked.identity.uid).is_some() || asked.find(&node.identity.uid).is_some());
    concerned.filter(|node| node.deleted.is_none()).find_map(|node| {
        let (child, cause) = contested(node)?;
        let is_child = |node: &Node| node.identity.uid == child.identity.uid;
        let path = path_to(asked, &is_child).unwrap_or_else(|| vec![asked, child]);
        Some(Finding { cause, path })
    })
}

/// The object that somebody keeps changing: the child that the message of its parent names. Otherwise the parent, whose
/// message says more: a child whose label is what the fight is about belongs to nobody meanwhile.
fn contested(node: &Node) -> Option<(&Node, Cause)> {
    let said = told(node)?;
    let is_named = |child: &&Node| {
        let Identity { kind, name, .. } = &child.identity;
        said.message.contains(&format!(" of {kind} {name:?}"))
    };
    let at = |node: &Node| Cause::with(&node.identity, REASON);
    let (at, cause) = match (changed_by(&said.message), node.children.iter().find(is_named)) {
        (Some(by), Some(child)) => (child, at(child).meaning(format!("is changed again and again by {by}"))),
        (Some(by), None) => {
            (node, at(node).meaning(format!("has a child that is changed again and again by {by}")))
        }
        (None, _) => (node, at(node)),
    };
    let cause = cause.message(said.message);
    Some((at, cause.since(Some(said.last_transition_time.0))))
}

/// Whom a message blames, in the words of the kit. The writes of a field manager may leave no trace on the object, where the
/// last writer of other fields may have nothing to do with it.
fn changed_by(message: &str) -> Option<String> {
    let (before, _) = message.split_once(" keeps changing ")?;
    if before.ends_with("somebody else") {
        return Some("somebody else".to_owned());
    }
    let (_, quoted) = before.split_once("the field manager ")?;
    serde_json::from_str(quoted).ok()
}

/// The report of a BasicDeployment that its controller has changed its child back again and again.
pub fn told(node: &Node) -> Option<Condition> {
    let is_parent = (node.identity.group(), node.identity.kind.as_str()) == (keys::GROUP, "BasicDeployment");
    let mut said = conditions(&node.object).into_iter().filter(|_| is_parent);
    said.find(|said| said.type_ == "Ready" && said.status == "False" && said.reason == REASON)
}
