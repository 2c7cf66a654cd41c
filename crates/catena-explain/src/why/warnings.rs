//! Events of type Warning about an object whose status has no reason.

use std::collections::HashSet;

use catena_cluster::{State, conditions, containers, last_seen, last_write, protection::BACKUP_CONTROLLER};
use jiff::{SignedDuration, Timestamp};

use catena_terminal::age;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;

use super::{BINDER, Facts, Warning, command::RUNNER, controllers::controller_of, edges, text::MAX_NAMED};
use crate::Node;

/// A probe fails for some time before its condition turns, and the controller that warns does not write the condition.
const LEAD_TIME: SignedDuration = SignedDuration::from_mins(1);
/// The API server records the times of writes in whole seconds.
const RESOLUTION_OF_WRITES: SignedDuration = SignedDuration::from_secs(1);
/// Reasons that explain nothing: on some nodes, each pod has the former, and the latter is also that of an audit.
const HARMLESS: [&str; 2] = ["DNSConfigForming", "PolicyViolation"];
/// Reasons of troubles that are over once a container of the pod has started, or its image is pulled.
const OF_START: [&str; 3] = ["FailedAttachVolume", "FailedCreatePodSandBox", "FailedMount"];
/// What a kubelet says of a volume for which it has waited, whatever keeps it.
const UNMOUNTED: &str = "Unable to attach or mount volumes";

/// The warnings about an object that may explain its present state, the newest first, and behind them those that do not tell why.
/// One from before its last transition, or about content that was changed since, is of a trouble that is over, and so is one
/// after which its reporter says something else.
pub fn current<'f>(node: &'f Node, facts: &'f Facts) -> impl Iterator<Item = &'f Warning> {
    let (since, changed) = (node.health.since, content_changed(node));
    let started = last_start(node).max(facts.pull_of(node).and_then(|pull| pull.at));
    let lead = if node.health.state == State::Ready { SignedDuration::ZERO } else { LEAD_TIME };
    let is_current = move |warning: &&Warning| match warning.at {
        _ if warning.reason == "FailedScheduling" && edges::node_of(node).is_some() => false,
        _ if HARMLESS.contains(&&*warning.reason) => false,
        _ if OF_START.contains(&&*warning.reason) && started.is_some() && warning.at <= started => false,
        Some(at) => {
            since.is_none_or(|since| since.duration_since(at) <= lead)
                && changed.is_none_or(|changed| at >= changed)
                && !is_outdated(node, warning, at)
        }
        None => true,
    };
    let about = facts.surroundings.warnings.iter().rev().filter(|warning| warning.about == node.identity.uid);
    let mut current: Vec<&Warning> = about.filter(is_current).collect();
    current.sort_by_key(|warning| warning.reason == "BackOff" || warning.message.starts_with(UNMOUNTED));
    current.into_iter()
}

/// Whether the controller of ours that warned has reported on the object since, and gives other reasons. Those of other
/// projects may have another word for it in their Events.
fn is_outdated(node: &Node, warning: &Warning, at: Timestamp) -> bool {
    let by = &*warning.by;
    let is_ours =
        [RUNNER, BINDER, BACKUP_CONTROLLER].contains(&by) || controller_of(&node.identity) == Some(by);
    let reported = last_write(&node.object.metadata, |entry| entry.manager.as_deref() == Some(by));
    let is_told = || {
        node.object.data["status"]["blockedBy"]["reason"] == *warning.reason
            || conditions(&node.object).iter().any(|found| found.reason == warning.reason)
    };
    let is_since = reported.is_some_and(|reported| at.duration_since(reported) <= RESOLUTION_OF_WRITES);
    is_ours && is_since && !is_told()
}

/// The last start of a container of a pod.
fn last_start(pod: &Node) -> Option<Timestamp> {
    let runs = ["/state/running", "/state/terminated", "/lastState/terminated"];
    let runs = containers(&pod.object).flat_map(|container| runs.map(|run| container.pointer(run)));
    runs.flatten().filter_map(|run| run["startedAt"].as_str()?.parse().ok()).max()
}

/// The message of the newest one that may explain the present state; empty if there is none.
pub fn message(node: &Node, facts: &Facts) -> String {
    current(node, facts).next().map(|warning| warning.message.clone()).unwrap_or_default()
}

/// The last change by a writer of more than metadata and the status.
fn content_changed(node: &Node) -> Option<Timestamp> {
    last_write(&node.object.metadata, |entry| {
        let owned = entry.fields_v1.as_ref().and_then(|fields| fields.0.as_object());
        let owns_content = owned.is_some_and(|owned| {
            // Where the status is no subresource, its writer may own the rest, too.
            !owned.contains_key("f:status") && owned.keys().any(|field| field != "f:metadata")
        });
        // A change of `scale` or `status` does not end a trouble.
        owns_content && entry.subresource.is_none()
    })
}

/// The newest warnings of an object, the newest first, each of another reason.
pub fn newest(node: &Node, facts: &Facts) -> Vec<String> {
    let mut reasons = HashSet::new();
    let newest = current(node, facts).filter(|warning| reasons.insert(&warning.reason));
    newest.take(MAX_NAMED).map(|warning| text(warning, facts.now)).collect()
}

fn text(Warning { by, reason, message, count, at, .. }: &Warning, now: Timestamp) -> String {
    let times = (*count > 1).then(|| format!("x{count}"));
    let by = Some(by.clone()).filter(|by| !by.is_empty());
    let ago = at.map(|at| format!("{} ago", age(now, at)));
    let source = times.into_iter().chain(by).chain(ago).collect::<Vec<_>>().join(", ");
    let source = if source.is_empty() { source } else { format!(" ({source})") };
    format!("Warning {reason}{source}: {message}")
}

/// The message of an object, followed by those of its Events that say something else.
pub fn after(said: &str, node: &Node, facts: &Facts) -> String {
    let others = newest(node, facts).into_iter().filter(|text| said.is_empty() || !text.ends_with(said));
    let said = Some(said).filter(|said| !said.is_empty()).map(str::to_owned);
    said.into_iter().chain(others).collect::<Vec<_>>().join("\n")
}

/// An Event as a diagnosis needs it.
pub fn warning(event: Event) -> Warning {
    let series = event.series.as_ref();
    let count = series.and_then(|series| series.count).or(event.count).unwrap_or_default();
    let made = event.event_time.as_ref().map(|time| time.0);
    let made = made.or_else(|| event.creation_timestamp().map(|time| time.0));
    let since = event.first_timestamp.as_ref().map(|time| time.0).or(made);
    let at = last_seen(&event);
    let message = event.message.unwrap_or_default();
    Warning {
        about: event.involved_object.uid.unwrap_or_default(),
        by: event.reporting_component.unwrap_or_default(),
        reason: event.reason.unwrap_or_default(),
        message: message.strip_prefix("(combined from similar events): ").unwrap_or(&message).to_owned(),
        count,
        since,
        at,
    }
}
