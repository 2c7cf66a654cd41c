//! Somebody who changes the child of a BasicDeployment again and again, so that it never comes to rest.

use catena_api::keys;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    advice::describe,
    answer::{Cause, Finding},
    command_kind::{is_command, is_waiting},
    facts::Facts,
};
use crate::{chain::Node, object::conditions};

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
        let mut path: Vec<&Node> = vec![child];
        let is_above = |above: &&Node| {
            above.find(&child.identity.uid).is_some() && above.identity.uid != child.identity.uid
        };
        for above in asked.all().filter(is_above).collect::<Vec<_>>().into_iter().rev() {
            path.insert(0, above);
        }
        if path.iter().all(|node| node.identity.uid != asked.identity.uid) {
            path.insert(0, asked);
        }
        Some(Finding { cause, path })
    })
}

/// The object that somebody keeps changing: the child while its fields name another manager, and otherwise the parent, whose
/// message says more.
fn contested(node: &Node) -> Option<(&Node, Cause)> {
    let said = told(node)?;
    let mut children = node.children.iter().filter(|child| !is_command(child) && child.serving.is_some());
    let changed = children.find_map(|child| Some((child, last_change(child)?.0)));
    let (meaning, advice) = describe(REASON);
    let (at, meaning) = match changed {
        Some((child, by)) => (child, format!("is changed again and again by {by}")),
        None => (node, meaning.to_owned()),
    };
    let cause = Cause {
        object: at.identity.clone(),
        reason: REASON.to_owned(),
        meaning,
        message: said.message,
        since: Some(said.last_transition_time.0),
        advice: advice.to_owned(),
    };
    Some((at, cause))
}

/// The report of a BasicDeployment that its controller has changed its child back again and again.
pub fn told(node: &Node) -> Option<Condition> {
    let is_parent = (node.identity.group(), node.identity.kind.as_str()) == (keys::GROUP, "BasicDeployment");
    let mut said = conditions(&node.object).into_iter().filter(|_| is_parent);
    said.find(|said| said.type_ == "Ready" && said.status == "False" && said.reason == REASON)
}

/// The last change of the spec by somebody other than our controllers.
fn last_change(node: &Node) -> Option<(String, Timestamp)> {
    changes(node).filter(|(manager, _)| !is_ours(manager)).max_by_key(|(_, at)| *at)
}

fn is_ours(manager: &str) -> bool {
    matches!(manager, "basic-deployment-controller" | "basic-replicaset-controller")
}

/// The writers of the spec, and when each wrote last.
fn changes(node: &Node) -> impl Iterator<Item = (String, Timestamp)> {
    let fields = node.object.metadata.managed_fields.iter().flatten();
    fields.filter(|entry| entry.subresource.as_deref() != Some("status")).filter_map(|entry| {
        let owns_spec = entry.fields_v1.as_ref().is_some_and(|fields| fields.0.get("f:spec").is_some());
        let at = entry.time.as_ref().map(|time| time.0)?;
        owns_spec.then(|| (entry.manager.clone().unwrap_or_default(), at))
    })
}
