//! Keeps the child in its desired state.

use std::sync::Arc;

use crate::{
    child::Child,
    command_queue::CommandQueue,
    contest::{self, left_for},
    decide::{action::Action, commands, history},
    desired::Desired,
    error::Refusal,
    observed::{Found, Observed},
    restarts, step,
    undone::Part,
};

/// Creates, adopts, changes or heals the child, and carries out commands on it.
pub fn keep(desired: &Desired, observed: &Observed, queue: &CommandQueue) -> Option<Action> {
    let record = || history::record(desired, observed);
    let is_paused = observed.deployment.spec.paused;
    match &observed.child {
        Found::Nothing if is_paused => None,
        Found::Nothing => {
            record().or_else(|| Some(Action::Create(desired.clone().under(restarts::token_of_new(observed)))))
        }
        Found::Ours(child) if child.is_deleting => None,
        Found::Leaving(_) => None,
        Found::Ours(child) if is_paused => scale(child, observed),
        Found::Ours(child) => record()
            .or_else(|| commands::start(observed, queue))
            .or_else(|| align(child, desired, observed))
            .or_else(|| scale(child, observed)),
        Found::Orphan(child) if child.hash() == desired.hash && !child.is_deleting => record()
            .or_else(|| Some(Action::Apply { child: child.clone(), desired: desired.clone(), heals: false })),
        Found::Orphan(child) | Found::Foreign(child) => history::prune(observed).or_else(|| {
            let (kind, name) = (observed.place.resource.kind.clone(), child.name.clone());
            Some(Action::Refuse(if child.was_left_behind() {
                Refusal::ChildOfAnotherContent { kind, name }
            } else {
                Refusal::ChildNotOwned { kind, name, holder: observed.child.holder() }
            }))
        }),
    }
}

/// The output of a child that cannot be read. Nothing is written to such a child, because nobody knows what it would do.
pub fn breach(observed: &Observed) -> Option<Refusal> {
    let child = observed.child.ours()?;
    let (kind, name) = (observed.place.resource.kind.clone(), child.name.clone());
    child.outputs.problem.clone().map(|problem| Refusal::ContractBroken { kind, name, problem })
}

/// Applies a new rendering at once, and undoes changes by somebody else, unless the server itself changes the applied
/// object.
fn align(child: &Arc<Child>, desired: &Desired, observed: &Observed) -> Option<Action> {
    let apply = |heals| Some(Action::Apply { child: child.clone(), desired: desired.clone(), heals });
    if child.hash() != desired.hash {
        return apply(false);
    }
    if !is_as_wanted(child, desired, observed) && left_for(Part::Rendering, observed).is_none() {
        return apply(true);
    }
    let additions = contest::additions(child, desired, observed);
    (!additions.is_empty() && left_for(Part::Additions, observed).is_none())
        .then(|| Action::Strip { child: child.clone(), additions })
}

pub fn is_as_wanted(child: &Child, desired: &Desired, observed: &Observed) -> bool {
    let seen = desired.seen_in(&child.object);
    seen == desired.comparable() || observed.settled_as.as_ref() == Some(&seen)
}

/// Sets the replicas of the deployment at once, and undoes later changes by somebody else.
pub fn scale(child: &Arc<Child>, observed: &Observed) -> Option<Action> {
    heals_scale(child, observed).map(|heals| Action::Scale { child: child.clone(), heals })
}

/// Whether setting a child's replicas undoes a change by somebody else; `None` if they are not to be set now.
fn heals_scale(child: &Child, observed: &Observed) -> Option<bool> {
    let heals = observed.given_replicas.get(&child.uid) == Some(&observed.deployment.spec.replicas);
    let is_left = heals && left_for(Part::Replicas, observed).is_some();
    (is_out_of_scale(child, observed) && !is_left).then_some(heals)
}

pub fn is_out_of_scale(child: &Child, observed: &Observed) -> bool {
    child.replicas(&observed.contract) != Some(observed.deployment.spec.replicas)
}

/// Scales a child with a former name, which serves until the new one is ready.
pub fn scale_former(observed: &Observed) -> Option<Action> {
    if observed.attempt.holds(step::SCALE_FORMER) {
        return None;
    }
    observed.former_children().find_map(|other| {
        heals_scale(other, observed).map(|heals| Action::ScaleFormer { child: other.clone(), heals })
    })
}

/// Deletes children with a former name when the new one serves.
pub fn clean_up(observed: &Observed) -> Option<Action> {
    let others: Vec<_> = observed.former_children().cloned().collect();
    (!others.is_empty() && observed.is_ready()).then_some(Action::Delete(others))
}
