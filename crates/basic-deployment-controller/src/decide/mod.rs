//! Observed → Action. Pure.

use std::{sync::Arc, time::Duration};

use catena_api::BasicDeploymentStatus;
use operator_kit::{Attempt, due_in};

use crate::{
    child::Child,
    error::Refusal,
    observe::{Desired, Found, Observed},
    status::{deadline_in, is_ready, is_urgent, status},
};

/// How long a change of the child by somebody else is left before it is undone once more: where two want the
/// same field, this is how often it changes.
const PATIENCE: Duration = Duration::from_secs(5);

/// One step for a `BasicDeployment`.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create the child.
    Create(Desired),
    /// Make the child what it is to be: adopt it, change it to a new rendering, or undo what somebody changed.
    Apply {
        /// The child.
        child: Arc<Child>,
        /// What it is to be.
        desired: Desired,
        /// Whether its rendering is the same as before.
        heals: bool,
    },
    /// Set the child's replicas.
    Scale(Arc<Child>),
    /// Delete children that others took over from.
    Delete(Vec<Arc<Child>>),
    /// Report that it would not do what was asked for.
    Refuse(Refusal),
    /// Write the status.
    WriteStatus(Box<BasicDeploymentStatus>),
    /// Come back later, when nothing happened before.
    Wait(Duration),
    /// Nothing is left to do.
    Settle,
}

/// The next step for a `BasicDeployment`.
pub fn decide(observed: &Observed) -> Action {
    if observed.deployment.metadata.deletion_timestamp.is_some() {
        // The garbage collector takes the child; creating another would keep it from ending.
        return Action::Settle;
    }
    let step = match observed.attempt {
        Attempt::Allowed => step(observed),
        Attempt::Deferred(_) => None,
    };
    step.unwrap_or_else(|| report(observed))
}

fn step(observed: &Observed) -> Option<Action> {
    let desired = match &observed.desired {
        Ok(desired) => desired,
        // A child that is there is still scaled.
        Err(refusal) => {
            return observed
                .child
                .ours()
                .and_then(|child| scale(child, observed))
                .or_else(|| Some(Action::Refuse(refusal.clone())));
        }
    };
    match &observed.child {
        Found::Nothing if observed.deployment.spec.paused => None,
        Found::Nothing => Some(Action::Create(desired.clone())),
        Found::Ours(child) if child.is_deleting => None,
        Found::Ours(child) => {
            align(child, desired, observed).or_else(|| scale(child, observed)).or_else(|| clean_up(observed))
        }
        Found::Orphan(child) if child.hash() == desired.hash && !child.is_deleting => {
            Some(Action::Apply { child: child.clone(), desired: desired.clone(), heals: false })
        }
        Found::Orphan(child) => Some(refuse(
            desired,
            child,
            "nobody that is known: it has no controller and does not come from this template",
        )),
        Found::Foreign(child) => {
            let holder = child
                .owner
                .as_ref()
                .map(|owner| format!("{} {:?}", owner.kind, owner.name))
                .unwrap_or_default();
            Some(refuse(desired, child, &holder))
        }
    }
}

fn refuse(desired: &Desired, child: &Child, holder: &str) -> Action {
    let kind = desired.object["kind"].as_str().unwrap_or_default().to_owned();
    Action::Refuse(Refusal::ChildNotOwned { kind, name: child.name.clone(), holder: holder.to_owned() })
}

/// A new rendering is applied at once; what somebody else changed is undone, unless the server itself shapes
/// what it is given.
fn align(child: &Arc<Child>, desired: &Desired, observed: &Observed) -> Option<Action> {
    if observed.deployment.spec.paused {
        return None;
    }
    let apply = |heals| Some(Action::Apply { child: child.clone(), desired: desired.clone(), heals });
    if child.hash() != desired.hash {
        return apply(false);
    }
    let seen = desired.seen_in(&child.object);
    if seen == desired.comparable() || observed.settled_as.as_ref() == Some(&seen) {
        return None;
    }
    match observed.since_healed.and_then(|since| PATIENCE.checked_sub(since)) {
        Some(left) if !left.is_zero() => Some(Action::Wait(left)),
        _ => apply(true),
    }
}

fn scale(child: &Arc<Child>, observed: &Observed) -> Option<Action> {
    (child.replicas(&observed.contract) != Some(observed.deployment.spec.replicas))
        .then(|| Action::Scale(child.clone()))
}

/// Children of an earlier name go when the new one serves.
fn clean_up(observed: &Observed) -> Option<Action> {
    let others: Vec<_> = observed.others.iter().filter(|other| !other.is_deleting).cloned().collect();
    (!others.is_empty() && is_ready(observed)).then_some(Action::Delete(others))
}

fn report(observed: &Observed) -> Action {
    let current = observed.deployment.status.clone().unwrap_or_default();
    let new = status(observed);
    if new == current {
        return deadline_in(observed).map_or(Action::Settle, Action::Wait);
    }
    match due_in(is_urgent(&current, &new), observed.status_age) {
        None => Action::WriteStatus(Box::new(new)),
        Some(time) => Action::Wait(time),
    }
}

#[cfg(test)]
mod tests;
