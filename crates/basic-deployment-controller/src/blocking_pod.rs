//! The pod that keeps a child from serving, for kinds that do not report it: when it is looked for, and in whose pods.

use std::time::Duration;

use catena_api::{BlockedBy, contract::PodController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_kit::write::Ownership;

use crate::{child::Child, observed::Observed};

/// Time without progress before the first look, and the shortest time between two: a rollout that goes on costs none.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(5);
/// The longest time between two looks, after two minutes without progress.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

/// Whether a pod may keep the child from serving without a report by the child.
fn is_needed(observed: &Observed) -> bool {
    let Some(child) = observed.child.ours() else { return false };
    let outputs = &child.outputs;
    outputs.pods.is_some()
        && outputs.blocked_by.is_none()
        && outputs.problem.is_none()
        && child.is_current()
        && !child.is_deleting
        && !observed.serves(child)
        && observed.deployment.metadata.deletion_timestamp.is_none()
        && observed.held_up().is_none()
        && observed.failure_about_child().is_none_or(|failure| observed.failure_to_heal() == Some(failure))
}

/// What the last look found, while it still matters.
#[must_use]
pub fn found(observed: &Observed) -> Option<&Result<Option<BlockedBy>, String>> {
    observed.look.as_ref().filter(|_| is_needed(observed)).map(|look| &look.found)
}

/// The time until the next look; `None` while none is needed.
#[must_use]
pub fn look_in(observed: &Observed) -> Option<Duration> {
    let interval = (observed.since_progress / 4).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
    let next = observed.look.as_ref().map_or(Duration::ZERO, |look| interval.saturating_sub(look.age));
    // A reported pod is checked: it may be gone, and after a start of this process nothing else is known about it.
    let reported = observed.deployment.status.as_ref().and_then(|status| status.blocked_by.as_ref());
    let first = match reported {
        Some(blocker) if blocker.kind == "Pod" => Duration::ZERO,
        _ => SHORTEST_INTERVAL.saturating_sub(observed.since_progress),
    };
    is_needed(observed).then_some(next.max(first))
}

/// Whether a controller of pods works for a child, on its current template.
#[must_use]
pub fn works_for(controller: &ObjectMeta, child: &Child, kind: &PodController) -> bool {
    let annotation = |key: &String| controller.annotations.as_ref().and_then(|all| all.get(key));
    Ownership::is_controlled_by(controller, &child.uid)
        && kind.revision_annotation.as_ref().is_none_or(|key| {
            annotation(key).is_some_and(|value| child.annotation(key) == Some(value.as_str()))
        })
}
