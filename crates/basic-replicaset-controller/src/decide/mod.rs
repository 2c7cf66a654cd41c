//! Observed → Action. Pure.

mod budget;
mod pods;
pub mod proof;
mod ranking;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use catena_api::{BasicReplicaSetStatus, deletion::Deletion};
use operator_templates::TemplateError;
use operator_watch::ApiError;

pub use budget::Budget;
use pods::Pods;

use crate::{
    observed::{Holder, Observed, TakenName},
    pod::PodRow,
    status::{minimum_age, next_blocker, status, told},
    step,
};

/// Pods created or deleted in one step at most, as in kube-controller-manager.
const BATCH: usize = 500;
/// Time between look-ups of an existing pod that its watch has not shown.
const LOOK_UP_INTERVAL: Duration = Duration::from_secs(1);

/// One step for a set.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Adopt these orphans.
    Adopt(Vec<Arc<PodRow>>),
    /// Create pods of the revision in these slots.
    Create {
        /// Their revision.
        revision: String,
        /// Their slots.
        slots: Vec<u32>,
    },
    /// Create pods again of the revision that served last.
    Recreate {
        /// That revision.
        revision: String,
        /// Their slots.
        slots: Vec<u32>,
    },
    /// Delete these pods.
    Delete(Vec<Arc<PodRow>>),
    /// Refresh the version in the owner references of these pods.
    RefreshOwner(Vec<Arc<PodRow>>),
    /// Restore the marks of a pod of ours.
    Mark {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
        /// Its slot.
        slot: u32,
    },
    /// Report names that belong to somebody else, so that their slots are skipped.
    PassOver(Vec<TakenName>),
    /// Report that pods that may be ours could not be looked up.
    GiveUp(ApiError),
    /// Report that there is no template to create pods from.
    Refuse(TemplateError),
    /// Write the status.
    WriteStatus(Box<BasicReplicaSetStatus>),
    /// Reconcile again later, unless something happens before.
    Wait(Duration),
    /// Nothing is left to do.
    Settle,
}

impl Action {
    /// The step of the action, if it can fail.
    #[must_use]
    pub fn step(&self) -> &'static str {
        match self {
            Self::Adopt(_) => step::ADOPT,
            Self::Create { .. } | Self::PassOver(_) | Self::Refuse(_) => step::CREATE,
            Self::Recreate { .. } => step::RECREATE,
            Self::Delete(_) => step::DELETE,
            Self::RefreshOwner(_) => step::REFRESH_OWNER,
            Self::Mark { .. } => step::MARK,
            Self::GiveUp(_) => step::LOOK_UP,
            Self::WriteStatus(_) => step::STATUS,
            Self::Wait(_) | Self::Settle => "",
        }
    }
}

/// The next step for a set.
#[must_use]
pub fn decide(observed: &Observed) -> Action {
    // Also during a deletion, for which the garbage collector has to find the set.
    if let Some(refresh) = refresh_owner(observed) {
        return refresh;
    }
    if let Some(deletion) = Deletion::of(&observed.set.metadata) {
        // The garbage collector deletes the pods; new ones would delay the end of the deletion.
        return deletion.due_in(observed.now).map_or_else(|| report(observed), Action::Wait);
    }
    if observed.backoffs.everything().is_some() {
        return report(observed);
    }
    recognise(observed)
        .or_else(|| adopt(observed))
        .or_else(|| replace(observed))
        .or_else(|| observed.unanswered.clone().map(Action::GiveUp))
        .unwrap_or_else(|| report(observed))
}

fn refresh_owner(observed: &Observed) -> Option<Action> {
    let is_outdated = |pod: &&Arc<PodRow>| pod.owner.as_ref().is_some_and(|owner| owner.is_outdated);
    let mut pods: Vec<_> = observed.pods.iter().filter(is_outdated).cloned().collect();
    pods.retain(|pod| !observed.backoffs.is_item_backing_off(step::REFRESH_OWNER, &pod.uid));
    pods.truncate(BATCH);
    (!pods.is_empty()).then_some(Action::RefreshOwner(pods))
}

/// Handles taken names, which belong to our pod from an earlier try or to somebody else's.
fn recognise(observed: &Observed) -> Option<Action> {
    let unmarked = observed.taken.iter().find_map(|taken| match &taken.holder {
        Holder::Unmarked { uid } if !observed.backoffs.is_backing_off(step::MARK) => {
            Some(Action::Mark { name: taken.name.clone(), uid: uid.clone(), slot: taken.slot })
        }
        _ => None,
    });
    let others = || {
        if observed.backoffs.is_backing_off(step::CREATE) {
            return None;
        }
        let is_others = |taken: &&TakenName| taken.holder == Holder::Other;
        let others: Vec<_> = observed.taken.iter().filter(is_others).cloned().collect();
        (!others.is_empty()).then_some(Action::PassOver(others))
    };
    unmarked.or_else(others)
}

/// Adopts orphans before pods are created in their place.
fn adopt(observed: &Observed) -> Option<Action> {
    if observed.backoffs.is_backing_off(step::ADOPT) {
        return None;
    }
    let there = observed.pods.iter().filter(|pod| pod.counts()).count();
    let wanted = observed.wanted().saturating_sub(there);
    let mut orphans = observed.orphans.clone();
    orphans.retain(|pod| !observed.backoffs.is_item_backing_off(step::ADOPT, &pod.uid));
    orphans.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
    orphans.truncate(wanted.min(BATCH));
    (!orphans.is_empty()).then_some(Action::Adopt(orphans))
}

fn replace(observed: &Observed) -> Option<Action> {
    // Computed once: it goes through all failed items.
    let is_in_vain = observed.is_in_vain(step::DELETE);
    let may_go =
        |pod: &Arc<PodRow>| !is_in_vain && !observed.backoffs.is_item_backing_off(step::DELETE, &pod.uid);
    let finished: Vec<_> = observed
        .pods
        .iter()
        .filter(|pod| observed.is_over(pod) && may_go(pod))
        .take(BATCH)
        .cloned()
        .collect();
    if !finished.is_empty() {
        return Some(Action::Delete(finished));
    }
    let budget = Budget::of(&observed.set.spec);
    let pods = Pods::of(observed, &budget);
    let doomed = ranking::doomed(observed, &budget, &pods, may_go);
    if !doomed.is_empty() {
        return Some(Action::Delete(doomed));
    }
    let ended = observed.pods.iter().filter(|pod| pod.has_ended());
    // Those that are over are still here only because they cannot be deleted.
    let (over, just_ended): (Vec<_>, Vec<_>) = ended.partition(|pod| observed.is_over(pod));
    // What served last comes first, and with a broken template it is all that can be created. While that is refused, the present
    // revision replaces it as if it were there.
    let comes_first = pods.missing_former > 0 && !observed.backoffs.is_backing_off(step::RECREATE);
    let former = observed.former.as_ref().filter(|_| comes_first || observed.revision.is_err());
    // Until they are gone, terminating pods that are awaited are old ones.
    let awaited = observed.awaited().unwrap_or(0);
    let missing = if comes_first {
        pods.missing_former.min(budget.most(pods.old()).saturating_sub(pods.total() + awaited))
    } else {
        budget.creatable(pods.updated.len(), pods.old() + awaited)
    };
    let missing = missing.min(budget.room_beside(pods.stubborn.len() + over.len(), pods.total()));
    let missing = missing.saturating_sub(just_ended.len() + observed.unseen());
    let step = if former.is_some() { step::RECREATE } else { step::CREATE };
    if missing == 0 || waits_to_create(observed, step) {
        return None;
    }
    // In a moment, they are orphans to adopt, or gone; an additional pod would stay.
    if let Some(time) = observed.succession {
        return Some(Action::Wait(time));
    }
    let slots = free_slots(observed, missing.min(BATCH));
    Some(match (former, &observed.revision) {
        (Some(former), _) => Action::Recreate { revision: former.clone(), slots },
        (None, Ok(revision)) => Action::Create { revision: revision.clone(), slots },
        (None, Err(error)) => Action::Refuse(error.clone()),
    })
}

/// Whether no pod is to be created now: because of a failure of that step, or because others may be adopted first.
fn waits_to_create(observed: &Observed, step: &str) -> bool {
    let takes_back_first = observed.backoffs.is_backing_off(step::ADOPT) && !observed.orphans.is_empty();
    let is_in_vain = step::CREATING.iter().any(|step| observed.is_in_vain(step));
    takes_back_first || observed.backoffs.is_backing_off(step) || is_in_vain
}

/// The lowest slots without a pod, not even a terminating one, because names follow from slots. A slot whose name
/// belongs to somebody else is skipped; the next one has another name.
fn free_slots(observed: &Observed, count: usize) -> Vec<u32> {
    let looked_at = observed.taken.iter().map(|taken| taken.slot);
    let taken: BTreeSet<u32> = observed.pods.iter().filter_map(|pod| pod.slot).chain(looked_at).collect();
    let held = step::CREATING.iter().flat_map(|step| observed.backoffs.backing_off_items(step));
    let held: BTreeSet<&str> = held.collect();
    let is_free = |slot: &u32| !taken.contains(slot) && !held.contains(&*slot.to_string());
    (0..).filter(is_free).take(count).collect()
}

fn report(observed: &Observed) -> Action {
    let current = told(&observed.set);
    let new = status(observed);
    let is_refused =
        observed.backoffs.everything().is_none() && observed.backoffs.is_backing_off(step::STATUS);
    let is_pending = new != current && !is_refused;
    let due_in = observed.status_age.due_in(minimum_age(&current, &new, observed));
    if is_pending && due_in.is_none() {
        return Action::WriteStatus(Box::new(new));
    }
    let next = due_in.filter(|_| is_pending).into_iter().chain(next_change(observed)).min();
    next.map_or(Action::Settle, Action::Wait)
}

/// The time until there is something to do or to report although nothing happens.
fn next_change(observed: &Observed) -> Option<Duration> {
    let finished = observed.pods.iter().filter(|pod| pod.has_ended());
    finished
        .map(|pod| observed.kept_for(pod))
        .filter(|left| !left.is_zero())
        .chain(next_blocker(observed))
        .chain(observed.next_available())
        .chain(observed.waits_for_a_name().then_some(LOOK_UP_INTERVAL))
        .min()
}

#[cfg(test)]
mod tests;
