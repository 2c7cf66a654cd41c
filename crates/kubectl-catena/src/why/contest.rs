//! Somebody who changes an object again and again, so that it never comes to rest.

use catena_api::keys;
use jiff::{SignedDuration, Timestamp};

use super::{
    advice::describe,
    answer::{Cause, Finding},
    command_kind::{is_command, is_waiting},
    facts::Facts,
};
use crate::{chain::Node, object::conditions};

/// The word for an object that others keep changing.
pub const REASON: &str = "ChangedByOthers";
/// The condition of a BasicDeployment with whose child somebody interferes.
pub const CONTESTED: &str = "Contested";
/// An object that has changed less often may be in the hands of a busy person.
const MIN_GENERATION: i64 = 10;
/// A change within this time is part of a series that continues.
const RECENT: SignedDuration = SignedDuration::from_secs(15);
/// The mean time between two changes of a series.
const MEAN_INTERVAL: i64 = 15;

/// The series of changes to the asked object, or to the one above or below it.
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
        let (child, cause) = contested(node).or_else(|| Some((node, restless(node, facts.now)?)))?;
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

/// The controller has had to restore its child again and again.
fn contested(node: &Node) -> Option<(&Node, Cause)> {
    let said = conditions(&node.object);
    let said = said.into_iter().find(|found| found.type_ == CONTESTED && found.status == "True")?;
    let child = node.children.iter().find(|child| !is_command(child) && child.serving.is_some())?;
    let mut cause = cause(child, last_change(child).map(|(by, _)| by));
    cause.message = said.message;
    cause.since = Some(said.last_transition_time.0);
    Some((child, cause))
}

/// An object of ours whose spec changes every few seconds.
fn restless(node: &Node, now: Timestamp) -> Option<Cause> {
    let is_ours = node.identity.group() == keys::GROUP && node.serving.is_some();
    let generation =
        node.object.metadata.generation.filter(|generation| is_ours && *generation >= MIN_GENERATION)?;
    // Our controllers change the objects below with each step of a rollout.
    let (by, changed) = last_change(node)?;
    let age = now.duration_since(node.created?);
    let is_series = age.as_secs() / generation <= MEAN_INTERVAL && now.duration_since(changed) <= RECENT;
    is_series.then(|| {
        let mut cause = cause(node, Some(by));
        cause.message = format!("its spec has changed {} times", generation - 1);
        cause
    })
}

fn cause(node: &Node, by: Option<String>) -> Cause {
    let by = by.unwrap_or_else(|| "somebody else".to_owned());
    Cause {
        object: node.identity.clone(),
        reason: REASON.to_owned(),
        meaning: format!("is changed again and again by {by}"),
        message: String::new(),
        since: None,
        advice: describe(REASON).1.to_owned(),
    }
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
