//! Observed → Action. Pure.

mod action;
mod child;
mod commands;
mod exchange;
mod history;
mod report;
pub mod unclaimed;

pub use action::{Action, Cause};

use catena_api::{BasicDeployment, deletion::Deletion};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use operator_kit::write::Ownership;

use crate::{
    command_queue::CommandQueue,
    decide::report::{report, report_deletion},
    observed::Observed,
    step,
};

/// The next step for a `BasicDeployment`.
#[must_use]
pub fn decide(observed: &Observed, queue: &CommandQueue) -> Action {
    // Also during a deletion, for which the garbage collector has to find the BasicDeployment.
    if let Some(refresh) = refresh_owner(observed) {
        return refresh;
    }
    if let Some(deletion) = Deletion::of(&observed.deployment.metadata) {
        // The garbage collector deletes the child; a new child would delay the end of the deletion.
        let report = report_deletion(observed, queue, deletion);
        let may_be_gone_soon = deletion.due_in(observed.now).is_some();
        return if may_be_gone_soon { report } else { report_first(report, observed, queue) };
    }
    if observed.held_up().is_none() {
        return step(observed, queue).unwrap_or_else(|| report(observed, queue));
    }
    report_first(report(observed, queue), observed, queue)
}

fn refresh_owner(observed: &Observed) -> Option<Action> {
    if observed.attempt.holds(step::REFRESH_OWNER) {
        return None;
    }
    let is_old = |owner: &Option<OwnerReference>| {
        owner.as_ref().is_some_and(Ownership::is_outdated::<BasicDeployment>)
    };
    let children: Vec<_> = observed.children().filter(|child| is_old(&child.owner)).cloned().collect();
    let revisions = observed.revisions.iter().filter(|revision| is_old(&revision.owner));
    let revisions: Vec<_> = revisions.cloned().collect();
    let is_needed = !children.is_empty() || !revisions.is_empty();
    is_needed.then_some(Action::RefreshOwner { children, revisions })
}

/// The own status comes before those of commands, one of which may be refused.
fn report_first(report: Action, observed: &Observed, queue: &CommandQueue) -> Action {
    match report {
        told @ Action::WriteStatus(_) => told,
        otherwise => commands::tell(observed, queue).unwrap_or(otherwise),
    }
}

/// Each rendering has its number before a command may name it. Commands only change the `BasicDeployment`, which the child
/// follows then. The child comes before reports, so that none can hold it up.
fn step(observed: &Observed, queue: &CommandQueue) -> Option<Action> {
    // Former children serve also beside one that breaks the contract.
    child::scale_former(observed)
        .or_else(|| child::record(observed))
        .or_else(|| commands::start(observed, queue))
        .or_else(|| commands::unpin(observed))
        .or_else(|| follow(observed, queue))
}

/// Brings the child in line with the `BasicDeployment`, and reports on commands.
fn follow(observed: &Observed, queue: &CommandQueue) -> Option<Action> {
    let tell = || commands::tell(observed, queue);
    if let Some(refusal) = observed.child.ours().and_then(|child| observed.breach_of(child)) {
        return child::refuse(observed, refusal).or_else(tell);
    }
    match &observed.desired {
        Ok(desired) => child::keep(desired, observed)
            .or_else(tell)
            .or_else(|| child::clean_up(observed))
            .or_else(|| history::prune(observed))
            .or_else(|| child::breach_of_former(observed).map(Action::RefuseFormer)),
        // An existing child is still restarted and scaled.
        Err(refusal) => {
            let child = observed.child.ours();
            child
                .and_then(|child| child::restart(child, observed).or_else(|| child::scale(child, observed)))
                .or_else(tell)
                .or_else(|| child::refuse(observed, refusal.clone()))
        }
    }
}

#[cfg(test)]
mod tests;
