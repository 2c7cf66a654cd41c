//! Observed → Action. Pure.

pub mod commands;
pub mod history;
pub mod restarts;

use std::{sync::Arc, time::Duration};

use catena_api::{BasicDeploymentStatus, CommandStatus};
use operator_kit::{
    render::Rendered,
    report::{Pace, StatusAge},
    run::Attempt,
};

use crate::{
    child::Child,
    command::Command,
    contest::{self, Additions, Part, left_for},
    desired::Desired,
    error::Refusal,
    observe::{Found, Observed},
    revision::{Rejects, Revision},
    status::{deadline_in, is_ready, pace, status, told},
};

/// How long the first status may wait for readiness where nothing blocks: a large child takes longer than the
/// kit waits for one object, and each status that only counts is a write.
const FIRST_STATUS: Duration = Duration::from_secs(20);

/// One step for a `BasicDeployment`.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Store a rendering as a revision.
    Record {
        /// What was rendered.
        rendered: Rendered,
        /// The revision's number.
        number: i64,
    },
    /// Make a revision the one that is wanted.
    Renumber {
        /// The revision.
        revision: Arc<Revision>,
        /// Its new number.
        number: i64,
        /// What is recorded on it of a rollback.
        rejects: Rejects,
    },
    /// Create the child.
    Create(Desired),
    /// Make the child what it is to be: adopt it, change it to another rendering, or undo what somebody changed.
    Apply {
        /// The child.
        child: Arc<Child>,
        /// What it is to be.
        desired: Desired,
        /// Whether its rendering is the same as before.
        heals: bool,
    },
    /// Record a restart on the child, and set its restart token.
    Restart {
        /// The child.
        child: Arc<Child>,
        /// The command.
        command: Arc<Command>,
        /// The token; `None` when the child's own is new enough.
        token: Option<String>,
    },
    /// Set the child's replicas.
    Scale {
        /// The child.
        child: Arc<Child>,
        /// Whether somebody else has changed them.
        heals: bool,
    },
    /// Set the replicas of a child of an earlier name.
    ScaleFormer {
        /// The child.
        child: Arc<Child>,
        /// Whether somebody else has changed them.
        heals: bool,
    },
    /// Take away what somebody else has added to maps that are the template's.
    Strip {
        /// The child.
        child: Arc<Child>,
        /// The keys.
        additions: Vec<Additions>,
    },
    /// Delete children that others took over from.
    Delete(Vec<Arc<Child>>),
    /// Delete revisions beyond the limit.
    Prune(Vec<Arc<Revision>>),
    /// Write the statuses of commands.
    Tell(Vec<(Arc<Command>, CommandStatus)>),
    /// Report that it would not do what was asked for.
    Refuse(Refusal),
    /// Write the status.
    WriteStatus(Box<BasicDeploymentStatus>),
    /// Come back later, when nothing happened before.
    Wait(Duration),
    /// Nothing is left to do.
    Settle,
}

// The steps that fail by themselves, and stop no other.
/// A child of an earlier name is scaled.
const SCALE_FORMER: &str = "scale-former";
/// The own status is written.
const STATUS: &str = "status";

impl Action {
    /// The step that it is; an empty one where a failure holds up everything.
    pub fn step(&self) -> &'static str {
        match self {
            Self::ScaleFormer { .. } => SCALE_FORMER,
            Self::WriteStatus(_) => STATUS,
            _ => "",
        }
    }
}

/// The next step for a `BasicDeployment`.
pub fn decide(observed: &Observed) -> Action {
    if observed.deployment.metadata.deletion_timestamp.is_some() {
        // The garbage collector takes the child; creating another would keep it from ending.
        return Action::Settle;
    }
    if observed.held_up().is_none() {
        return step(observed).unwrap_or_else(|| report(observed));
    }
    // The own status first: it may be a command's that the server refuses.
    match report(observed) {
        told @ Action::WriteStatus(_) => told,
        otherwise => commands::tell(observed).unwrap_or(otherwise),
    }
}

/// The child first, so that nothing that is only to be told can hold it up; then commands, before a child goes
/// that was the proof of one.
fn step(observed: &Observed) -> Option<Action> {
    if let Some(scaled) = scale_former(observed) {
        return Some(scaled);
    }
    let desired = match &observed.desired {
        Ok(desired) => desired,
        // A child that is there still follows commands, and is scaled.
        Err(refusal) => {
            return commands::start(observed)
                .or_else(|| observed.child.ours().and_then(|child| scale(child, observed)))
                .or_else(|| commands::tell(observed))
                .or_else(|| Some(Action::Refuse(refusal.clone())));
        }
    };
    keep_child(desired, observed)
        .or_else(|| commands::tell(observed))
        .or_else(|| clean_up(observed))
        .or_else(|| history::prune(observed))
}

fn keep_child(desired: &Desired, observed: &Observed) -> Option<Action> {
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
            .or_else(|| commands::start(observed))
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

/// A new rendering is applied at once; what somebody else changed is undone, unless the server itself shapes
/// what it is given.
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

fn is_as_wanted(child: &Child, desired: &Desired, observed: &Observed) -> bool {
    let seen = desired.seen_in(&child.object);
    seen == desired.comparable() || observed.settled_as.as_ref() == Some(&seen)
}

/// When somebody's change is undone, if one is there of a part that was put back only just now.
fn healing_in(observed: &Observed) -> Option<Duration> {
    let child = observed.child.ours();
    let is_changed = |part: &Part| match (part, child, &observed.desired) {
        (Part::Replicas, ..) => {
            child.into_iter().chain(former(observed)).any(|child| is_out_of_scale(child, observed))
        }
        (_, None, _) | (_, _, Err(_)) => false,
        _ if observed.deployment.spec.paused => false,
        (Part::Rendering, Some(child), Ok(desired)) => !is_as_wanted(child, desired, observed),
        (Part::Additions, Some(child), Ok(desired)) => {
            !contest::additions(child, desired, observed).is_empty()
        }
    };
    let parts = [Part::Rendering, Part::Replicas, Part::Additions];
    parts.into_iter().filter(is_changed).filter_map(|part| left_for(part, observed)).min()
}

/// What the deployment asks for is set at once; what somebody else makes of it afterwards is put back.
fn scale(child: &Arc<Child>, observed: &Observed) -> Option<Action> {
    heals_scale(child, observed).map(|heals| Action::Scale { child: child.clone(), heals })
}

/// Whether setting a child's replicas undoes what somebody else did; `None` when they are not to be set now.
fn heals_scale(child: &Child, observed: &Observed) -> Option<bool> {
    let heals = observed.given_replicas.get(&child.uid) == Some(&observed.deployment.spec.replicas);
    let is_left = heals && left_for(Part::Replicas, observed).is_some();
    (is_out_of_scale(child, observed) && !is_left).then_some(heals)
}

fn is_out_of_scale(child: &Child, observed: &Observed) -> bool {
    child.replicas(&observed.contract) != Some(observed.deployment.spec.replicas)
}

/// A child of an earlier name serves until the new one is ready: the number that is asked for reaches it too.
fn scale_former(observed: &Observed) -> Option<Action> {
    if observed.attempt.holds(SCALE_FORMER) {
        return None;
    }
    former(observed).find_map(|other| {
        heals_scale(other, observed).map(|heals| Action::ScaleFormer { child: other.clone(), heals })
    })
}

/// Children of an earlier name go when the new one serves.
fn clean_up(observed: &Observed) -> Option<Action> {
    let others: Vec<_> = former(observed).cloned().collect();
    (!others.is_empty() && is_ready(observed)).then_some(Action::Delete(others))
}

fn former(observed: &Observed) -> impl Iterator<Item = &Arc<Child>> {
    observed.others.iter().filter(|other| !other.is_deleting)
}

fn report(observed: &Observed) -> Action {
    let current = told(&observed.deployment);
    let new = status(observed);
    let is_refused = matches!(&observed.attempt, Attempt::Without(_)) && observed.attempt.holds(STATUS);
    let is_news = new != current && !is_refused;
    let due = match (observed.status_age, pace(&current, &new, observed)) {
        (StatusAge::Unwritten(age), Pace::Settled | Pace::Counting) => {
            FIRST_STATUS.checked_sub(age).filter(|left| !left.is_zero())
        }
        (age, pace) => age.due_in(pace),
    };
    if is_news && due.is_none() {
        return Action::WriteStatus(Box::new(new));
    }
    [
        due.filter(|_| is_news),
        deadline_in(observed),
        healing_in(observed),
        contest::over_in(observed),
        commands::due_in(observed),
    ]
    .into_iter()
    .flatten()
    .min()
    .map_or(Action::Settle, Action::Wait)
}

#[cfg(test)]
mod tests;
