//! The blocker of an object, or the object that leads to it.

use catena_api::BlockedBy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    answer::{Cause, Finding},
    command::is_command,
    containers, contest,
    controllers::{Verdict, controller_of, not_running},
    diagnose::{explain, follow, path_to},
    facts::Facts,
    readiness,
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
    let doubt = contradiction(node, facts);
    if node.health.state.is_healthy() && !has_unhealthy_dependents(node) && doubt.is_none() {
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
                let next = next.into_iter().chain(unhealthy_children(node, facts));
                return follow(node, next, Some(cause), facts);
            }
            return Some(Finding::at(node, cause));
        }
        let Some(path) = path_to(node, &|below| is_itself(&blocker, below)) else {
            let BlockedBy { api_version, kind, name, .. } = &blocker;
            let object = Identity::new(api_version, kind, node.identity.namespace.as_deref(), name);
            return Some(Finding::at(node, named(&object, &blocker)));
        };
        // It may be well by now: the status is about to follow.
        if let Some(finding) = path.last().and_then(|last| explain(last, facts)) {
            let between = path.iter().rev().skip(1);
            return Some(between.fold(finding, |finding, above| finding.below(above)));
        }
        next.extend(path.get(1));
    }
    next.extend(unhealthy_children(node, facts));
    let cause = if node.health.state.is_healthy() {
        doubt.map(|doubt| Cause::with(&node.identity, "StatusContradictory").meaning(doubt))
    } else {
        Some(own(node, facts))
    };
    follow(node, next, cause, facts)
}

/// Why an object is not ready although it reports so, as far as its pods were read.
fn contradiction(node: &Node, facts: &Facts) -> Option<String> {
    readiness::contradiction(node, !facts.surroundings.is_incomplete)
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

/// The blocker that a status names, also where another project has not all fields of ours.
fn blocked_by(node: &Node) -> Option<BlockedBy> {
    let blocker = node.object.data.pointer("/status/blockedBy")?;
    let text = |field: &str| blocker[field].as_str().unwrap_or_default().to_owned();
    let since = blocker["since"].as_str().and_then(|since| since.parse().ok()).map(Time);
    let [api_version, kind, name] = ["apiVersion", "kind", "name"].map(text);
    let is_named = !kind.is_empty() && !name.is_empty();
    is_named.then(|| BlockedBy::new([&api_version, &kind, &name], &text("reason"), &text("message"), since))
}

fn is_itself(blocker: &BlockedBy, node: &Node) -> bool {
    blocker.kind == node.identity.kind && blocker.name == node.identity.name
}

/// The blocker of an object, which is the object itself if its controller cannot continue. Another one is named but was not
/// found: it is gone, or may not be read.
fn named(object: &Identity, blocker: &BlockedBy) -> Cause {
    let since = blocker.since.as_ref().map(|since| since.0);
    reported(object, &blocker.reason, &blocker.message).since(since)
}

/// Children that are not well, stuck ones first. Commands come and go beside the chain.
pub fn unhealthy_children<'n>(node: &'n Node, facts: &Facts) -> impl Iterator<Item = &'n Node> {
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
        .filter(|child| {
            let is_open = !child.health.state.is_healthy() || has_unhealthy_dependents(child);
            is_open || contradiction(child, facts).is_some()
        })
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
    let is_warned = warning.is_some();
    // For a pod that merely is not ready, the last warning has the problem that its kubelet met.
    let is_vague = matches!(health.reason.as_str(), "NotReady" | "Starting");
    let (reason, message) = match warning {
        Some(warning) if is_vague => (&health.reason, &warning.message),
        Some(warning) if health.message.is_empty() => (&warning.reason, &warning.message),
        _ => (&health.reason, &health.message),
    };
    let reason = if reason.is_empty() { "NotReady" } else { reason };
    let mut cause = containers::named(reported(&node.identity, reason, message).since(health.since), node);
    let is_quoted = warning.is_some_and(|warning| warning.message == *message);
    if is_warned && !is_quoted && (cause.advice.is_empty() || cause.is_progress) {
        // What somebody warns of is no mere progress.
        cause.message = warnings::after(&health.message, node, facts);
        (cause.advice, cause.is_progress) = (String::new(), false);
    }
    let usual = if is_warned { "UnknownReason" } else { usual(node) };
    if let Some(row) = describe(usual).filter(|_| cause.advice.is_empty()) {
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
