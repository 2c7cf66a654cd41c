//! Observed → Action. Pure.

mod action;
mod child;
mod exchange;
mod history;
mod report;

pub use action::Action;

use catena_api::{BasicDeployment, deletion::Deletion};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use operator_kit::write::Ownership;

use crate::{
    decide::report::{report, report_deletion},
    observed::Observed,
};

/// The next step for a `BasicDeployment`.
#[must_use]
pub fn decide(observed: &Observed) -> Action {
    // Also during a deletion, for which the garbage collector has to find the BasicDeployment.
    if let Some(refresh) = refresh_owner(observed) {
        return refresh;
    }
    if let Some(deletion) = Deletion::of(&observed.deployment.metadata) {
        // The garbage collector deletes the child; a new child would delay the end of the deletion.
        return report_deletion(observed, deletion);
    }
    let step = if observed.held_up().is_none() { step(observed) } else { None };
    step.unwrap_or_else(|| report(observed))
}

fn refresh_owner(observed: &Observed) -> Option<Action> {
    let is_old = |owner: &Option<OwnerReference>| {
        owner.as_ref().is_some_and(Ownership::is_outdated::<BasicDeployment>)
    };
    let children: Vec<_> = observed.children().filter(|child| is_old(&child.owner)).cloned().collect();
    let revisions = observed.revisions.iter().filter(|revision| is_old(&revision.owner));
    let revisions: Vec<_> = revisions.cloned().collect();
    let is_needed = !children.is_empty() || !revisions.is_empty();
    if is_needed { Action::RefreshOwner { children, revisions }.unless_held(observed) } else { None }
}

/// Each rendering has its number before it is used.
fn step(observed: &Observed) -> Option<Action> {
    // Former children serve also beside one that breaks the contract.
    child::scale_former(observed)
        .or_else(|| child::record(observed))
        .or_else(|| unpin(observed))
        .or_else(|| follow(observed))
}

/// Removes a pin that holds no longer: if the rejected rendering came back, it would hold again.
fn unpin(observed: &Observed) -> Option<Action> {
    if observed.has_spent_pin() { Action::Unpin.unless_held(observed) } else { None }
}

/// Brings the child in line with the `BasicDeployment`.
fn follow(observed: &Observed) -> Option<Action> {
    if let Some(refusal) = observed.child.ours().and_then(|child| child.breach()) {
        return Action::Refuse(refusal).unless_held(observed);
    }
    match &observed.desired {
        Ok(desired) => child::keep(desired, observed)
            .or_else(|| child::clean_up(observed))
            .or_else(|| history::prune(observed))
            .or_else(|| refuse_former(observed)),
        // An existing child is still restarted and scaled.
        Err(refusal) => {
            let child = observed.child.ours();
            child
                .and_then(|child| child::restart(child, observed).or_else(|| child::scale(child, observed)))
                .or_else(|| Action::Refuse(refusal.clone()).unless_held(observed))
        }
    }
}

/// Reports an output of a former child that cannot be read, so that its share of the exchange stays as it is.
fn refuse_former(observed: &Observed) -> Option<Action> {
    let refusal = observed.former_children().find_map(|child| child.breach())?;
    Action::RefuseFormer(refusal).unless_held(observed)
}

#[cfg(test)]
mod tests;
