//! The blocker of an object, or the object that leads to it.

use catena_api::BlockedBy;

use super::{
    answer::{Cause, Finding},
    command_kind::is_command,
    contest,
    controllers::{Verdict, controller_of, not_running},
    diagnose::follow,
    facts::Facts,
    reasons::{describe, reported},
    warnings,
};
use crate::{
    chain::{Node, State},
    object::{Identity, conditions},
};

/// Reasons of an object whose spec is not followed at all: whatever its present pods suffer from, no correction reaches them.
const NOT_FOLLOWED: [&str; 3] = ["Paused", "ChangedWhilePaused", "KindNotListed"];

/// The obstacle to the readiness of an object.
pub fn check<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Finding<'n>> {
    if node.health.state.is_healthy() && !has_unhealthy_dependents(node) {
        return None;
    }
    if NOT_FOLLOWED.contains(&node.health.reason.as_str()) {
        return Some(Finding::at(node, own(node, facts)));
    }
    let mut next: Vec<&Node> = facts.surroundings.related.former_child(node).into_iter().collect();
    if let Some(blocker) = blocked_by(node) {
        if is_itself(&blocker, node) {
            let cause = named(&node.identity, &blocker);
            let since = cause.since.or(node.health.since);
            let cause = cause.since(since);
            if contest::told(node).is_some() {
                let next = next.into_iter().chain(unhealthy_children(node));
                return follow(node, next, Some(cause), facts);
            }
            return Some(Finding::at(node, cause));
        }
        let Some(child) = child_towards(&blocker, node) else {
            let BlockedBy { api_version, kind, name, .. } = &blocker;
            let object = Identity::new(api_version, kind, node.identity.namespace.as_deref(), name);
            return Some(Finding::at(node, named(&object, &blocker)));
        };
        // It may be well by now: the status is about to follow.
        next.push(child);
    }
    next.extend(unhealthy_children(node));
    follow(node, next, (!node.health.state.is_healthy()).then(|| own(node, facts)), facts)
}

/// Whether an object without a status of its own has dependents that are not well. Finished ones do not count.
fn has_unhealthy_dependents(node: &Node) -> bool {
    let is_open = |child: &Node| match child.health.state {
        State::Ready | State::Done | State::Failed | State::Terminating => false,
        // A Job of a schedule runs for a time.
        State::Moving if child.identity.group() == "batch" => {
            child.children.iter().any(|pod| pod.health.state == State::Stuck)
        }
        State::Moving | State::Unreported | State::Stuck => true,
        State::Present => has_unhealthy_dependents(child),
    };
    node.health.state == State::Present
        && node.children.iter().any(|child| !is_command(child) && is_open(child))
}

fn blocked_by(node: &Node) -> Option<BlockedBy> {
    serde_json::from_value(node.object.data.pointer("/status/blockedBy")?.clone()).ok()
}

fn is_itself(blocker: &BlockedBy, node: &Node) -> bool {
    blocker.kind == node.identity.kind && blocker.name == node.identity.name
}

/// The child that is, or leads to, the blocker.
fn child_towards<'n>(blocker: &BlockedBy, node: &'n Node) -> Option<&'n Node> {
    node.children
        .iter()
        .find(|child| !is_command(child) && child.all().any(|below| is_itself(blocker, below)))
}

/// The blocker of an object, which is the object itself if its controller cannot continue. Another one is named but was not
/// found: it is gone, or may not be read.
fn named(object: &Identity, blocker: &BlockedBy) -> Cause {
    let since = blocker.since.as_ref().map(|since| since.0);
    reported(object, &blocker.reason, &blocker.message).since(since)
}

/// Children that are not well, stuck ones first. Commands come and go beside the chain.
pub fn unhealthy_children(node: &Node) -> impl Iterator<Item = &Node> {
    let rank = |child: &&Node| match child.health.state {
        State::Stuck | State::Failed => 0,
        State::Unreported => 1,
        State::Moving => 2,
        _ => 3,
    };
    let mut children: Vec<&Node> = node
        .children
        .iter()
        .filter(|child| !is_command(child) && !is_replaced(child, node))
        .filter(|child| !child.health.state.is_healthy() || has_unhealthy_dependents(child))
        .collect();
    children.sort_by_key(rank);
    children.into_iter()
}

/// Whether a pod has ended and its owner has made another one: it can be left for weeks.
fn is_replaced(child: &Node, owner: &Node) -> bool {
    let owner = (owner.identity.group(), owner.identity.kind.as_str());
    child.health.state == State::Failed
        && matches!(owner, ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet"))
}

/// The cause lies with the object: its own message, or an Event about it.
fn own(node: &Node, facts: &Facts) -> Cause {
    let health = &node.health;
    if health.state == State::Moving
        && let Some(controller) = controller_of(&node.identity)
        && let Verdict::Down(down) = facts.verdict(controller)
    {
        return not_running(&node.identity, controller, &down);
    }
    let warning = warnings::current(node, facts).next();
    // For a pod that merely is not ready, the last warning has the problem that its kubelet met.
    let is_vague = matches!(health.reason.as_str(), "NotReady" | "Starting");
    let (reason, message) = match warning {
        Some(warning) if is_vague => (&health.reason, &warning.message),
        Some(warning) if health.message.is_empty() => (&warning.reason, &warning.message),
        _ => (&health.reason, &health.message),
    };
    let reason = if reason.is_empty() { "NotReady" } else { reason };
    let mut cause = reported(&node.identity, reason, message).since(health.since);
    if let Some(row) = describe(usual(node)).filter(|_| cause.advice.is_empty()) {
        (cause.advice, cause.is_progress) = (row.remedy.clone(), row.is_progress);
    }
    cause
}

/// The reason whose advice is given for one that nobody describes: progress has only to be waited for.
fn usual(node: &Node) -> &'static str {
    let is_alone = node.children.is_empty();
    let reports_failure = conditions(&node.object).iter().any(|condition| {
        matches!(condition.type_.as_str(), "Ready" | "Available") && condition.status == "False"
    });
    match node.health.state {
        State::Moving if !(reports_failure && is_alone) => "UnderWay",
        _ => "UnknownReason",
    }
}
