//! Observed → Action. Pure.

mod budget;
mod ranking;
pub mod step;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use catena_api::{BasicReplicaSet, BasicReplicaSetStatus};
use jiff::Timestamp;
use operator_kit::{render::TemplateError, run::Attempt};

pub use budget::Budget;

use crate::{
    observe::Observed,
    pod::{PodRow, PodState},
    status::{pace, status, told},
};

/// Pods created or deleted in one step at most, as in kube-controller-manager.
const BATCH: usize = 500;
/// How long a pod that ended by itself is kept before its place is filled again, so that a pod that always
/// ends at once is not made again in a tight loop.
const FINISHED: Duration = Duration::from_secs(10);
/// Places or pods of a step that fail, beyond the wanted number, before the step is taken for no other: names that
/// are all taken would be tried for ever.
const IN_VAIN: usize = 32;
/// How old a set is when it waits no longer for the garbage collector, which may not run.
const SUCCESSION: Duration = Duration::from_secs(10);

/// One step for a set.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make these orphans ours again.
    Adopt(Vec<Arc<PodRow>>),
    /// Create pods of the revision in these places.
    Create {
        /// What they are made from.
        revision: String,
        /// The places that they fill.
        slots: Vec<u32>,
    },
    /// Delete these pods.
    Delete(Vec<Arc<PodRow>>),
    /// Report that there is no template to create pods from.
    Refuse(TemplateError),
    /// Write the status.
    WriteStatus(Box<BasicReplicaSetStatus>),
    /// Come back later, when nothing happened before.
    Wait(Duration),
    /// Nothing is left to do.
    Settle,
}

/// The next step for a set.
pub fn decide(observed: &Observed) -> Action {
    if observed.set.metadata.deletion_timestamp.is_some() {
        // The garbage collector takes the pods; creating others would keep it from ending.
        return Action::Settle;
    }
    let step = match observed.attempt {
        Attempt::Allowed | Attempt::Without(_) => adopt(observed).or_else(|| replace(observed)),
        Attempt::Deferred(_) => None,
    };
    step.unwrap_or_else(|| report(observed))
}

/// Orphans are taken back before pods are created in their place.
fn adopt(observed: &Observed) -> Option<Action> {
    if observed.attempt.holds(step::ADOPT) {
        return None;
    }
    let there = observed.pods.iter().filter(|pod| pod.counts()).count();
    let wanted = wanted(&observed.set).saturating_sub(there);
    let mut orphans = observed.orphans.clone();
    orphans.retain(|pod| !observed.attempt.holds_item(step::ADOPT, &pod.uid));
    orphans.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
    orphans.truncate(wanted.min(BATCH));
    (!orphans.is_empty()).then_some(Action::Adopt(orphans))
}

fn replace(observed: &Observed) -> Option<Action> {
    let may_go = |pod: &Arc<PodRow>| {
        let is_held = observed.attempt.holds_item(step::DELETE, &pod.uid);
        !is_held && !is_in_vain(observed, step::DELETE)
    };
    let finished: Vec<_> =
        observed.pods.iter().filter(|pod| is_over(pod, observed) && may_go(pod)).cloned().collect();
    if !finished.is_empty() {
        return Some(delete(finished));
    }
    let revision = observed.revision.as_ref();
    let (updated, outdated): (Vec<_>, Vec<_>) = observed
        .pods
        .iter()
        .filter(|pod| pod.counts())
        .cloned()
        // Without a template nothing can take the place of an old pod, so that none counts as outdated.
        .partition(|pod| revision.is_err() || revision.is_ok_and(|revision| **revision == *pod.revision));
    // An old pod that may not be deleted counts like one that is going already: for nothing but that it serves.
    let (stubborn, outdated): (Vec<_>, Vec<_>) =
        outdated.into_iter().partition(|pod| observed.attempt.failed_item(step::DELETE, &pod.uid));
    let budget = Budget::of(&observed.set.spec);
    let doomed = ranking::doomed(&budget, &updated, &outdated, &stubborn, may_go);
    if !doomed.is_empty() {
        return Some(delete(doomed));
    }
    let has_just_ended =
        |pod: &&Arc<PodRow>| matches!(pod.state, PodState::Finished(_)) && !is_over(pod, observed);
    let just_ended = observed.pods.iter().filter(has_just_ended).count();
    let missing = budget.creatable(updated.len(), outdated.len()).saturating_sub(just_ended);
    if missing == 0 || waits_to_create(observed) {
        return None;
    }
    // They are orphans to take back, or gone, in a moment; one too many would stay.
    if let Some(time) =
        succession_ends_in(&observed.set, observed.now).filter(|_| !observed.former.is_empty())
    {
        return Some(Action::Wait(time));
    }
    Some(match revision {
        Ok(revision) => {
            Action::Create { revision: revision.clone(), slots: free_slots(observed, missing.min(BATCH)) }
        }
        Err(error) => Action::Refuse(error.clone()),
    })
}

/// Whether no pod is to be created now: because of a failure, or because others are to be taken back first.
fn waits_to_create(observed: &Observed) -> bool {
    let takes_back_first = observed.attempt.holds(step::ADOPT) && !observed.orphans.is_empty();
    takes_back_first || observed.attempt.holds(step::CREATE) || is_in_vain(observed, step::CREATE)
}

/// Whether a step failed for so many places or pods that it will not do for another one either.
pub fn is_in_vain(observed: &Observed, step: &str) -> bool {
    observed.attempt.held_items(step) >= IN_VAIN + wanted(&observed.set)
}

/// How long a new set waits at most for what is to become of the pods of a former one of its name.
pub fn succession_ends_in(set: &BasicReplicaSet, now: Timestamp) -> Option<Duration> {
    let created = set.metadata.creation_timestamp.as_ref()?.0;
    let age = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    SUCCESSION.checked_sub(age).filter(|left| !left.is_zero())
}

fn delete(mut pods: Vec<Arc<PodRow>>) -> Action {
    pods.truncate(BATCH);
    Action::Delete(pods)
}

/// Whether a pod ended by itself long enough ago.
fn is_over(pod: &PodRow, observed: &Observed) -> bool {
    matches!(pod.state, PodState::Finished(_)) && left(pod, observed).is_zero()
}

fn left(pod: &PodRow, observed: &Observed) -> Duration {
    let age = Duration::try_from(observed.now.duration_since(pod.created)).unwrap_or_default();
    FINISHED.saturating_sub(age)
}

/// The lowest places that no pod has, not even one that is going, because names follow from places. A place whose
/// name is somebody else's is passed over; the next one has another name.
fn free_slots(observed: &Observed, count: usize) -> Vec<u32> {
    let taken: BTreeSet<u32> = observed.pods.iter().filter_map(|pod| pod.slot).collect();
    let is_free =
        |slot: &u32| !taken.contains(slot) && !observed.attempt.holds_item(step::CREATE, &slot.to_string());
    (0..).filter(is_free).take(count).collect()
}

fn report(observed: &Observed) -> Action {
    let current = told(&observed.set);
    let new = status(observed);
    if new == current {
        let finished = observed.pods.iter().filter(|pod| matches!(pod.state, PodState::Finished(_)));
        let next = finished
            .map(|pod| left(pod, observed))
            .filter(|left| !left.is_zero())
            .chain(crate::status::next_blocker(observed))
            .min();
        return next.map_or(Action::Settle, Action::Wait);
    }
    let is_refused = matches!(&observed.attempt, Attempt::Without(_)) && observed.attempt.holds(step::STATUS);
    match observed.status_age.due_in(pace(&current, &new, observed)) {
        _ if is_refused => Action::Settle,
        None => Action::WriteStatus(Box::new(new)),
        Some(time) => Action::Wait(time),
    }
}

/// How many pods a set is to have.
pub fn wanted(set: &BasicReplicaSet) -> usize {
    usize::try_from(set.spec.replicas).unwrap_or(0)
}

#[cfg(test)]
mod tests;
