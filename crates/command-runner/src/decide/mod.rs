//! Observed → Action. Pure.

pub mod judge;

use std::time::Duration;

use catena_api::{
    CommandStatus,
    deletion::{Deletion, TERMINATING},
    keys, reason,
};
use command_kinds::run::Told;
use jiff::Timestamp;
use operator_watch::Failure;
use serde_json::{Value, json};

use crate::{
    command::{created, recent},
    observed::{Look, Observed, Target},
    status,
};
use judge::{State, judge, told};

/// The step of running a command: its failure holds up only the same step.
pub const RUN: &str = "run";
/// The step of reporting on it.
pub const REPORT: &str = "report";

/// Minimum time between writes of a status in which only the progress changes.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Time between looks at a target whose changes may go unnoticed, or at which a rule may compare the time.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// Time until another look while it is unknown where a run is reported.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(15);
/// Age from which it is reported that a command is not bound: most are bound before.
const BINDING_TIME: Duration = Duration::from_secs(10);
/// Time until another try after a live read that showed another state than the cache.
const CATCH_UP_INTERVAL: Duration = Duration::from_secs(1);

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Carry the command out: this patch of its target, with the proof that it ran.
    Run(Value),
    /// Write its status.
    Report(Box<CommandStatus>),
    /// Look again after this time.
    Wait(Duration),
    /// Nothing, until something changes.
    Settle,
}

impl Action {
    /// The step of the action.
    #[must_use]
    pub fn step(&self) -> &'static str {
        match self {
            Self::Run(_) => RUN,
            Self::Report(_) => REPORT,
            Self::Wait(_) | Self::Settle => "",
        }
    }
}

/// The next step for a command.
#[must_use]
pub fn decide(observed: &Observed) -> Action {
    let command = &observed.command;
    let row = &command.row;
    if row.target.is_none() || row.has_ended() {
        return Action::Settle;
    }
    if observed.takes_status.is_none() {
        return Action::Wait(UNKNOWN_INTERVAL);
    }
    if let Some(since) = &command.metadata.deletion_timestamp {
        let deletion = Deletion::new(since, &row.finalizers);
        return match deletion.due_in(observed.now) {
            Some(left) => Action::Wait(left),
            None => report(observed, &State::Waiting(cancelled(row.has_started(), deletion))),
        };
    }
    if let Look::Later(time) = observed.target {
        return Action::Wait(time);
    }
    let state = match (judge(observed), observed.found(), observed.backoffs.everything()) {
        (State::Waiting(_), None, Some(failure)) => failed(failure),
        // Only its target tells whether it ran, and has succeeded.
        (State::Failed(_), None, Some(failure)) if row.target_id().is_some() => failed(failure),
        (State::Due(patch), Some(target), _) => match observed.backoffs.step_failure(RUN) {
            Some(failure) if !failure.is_expected => failed(failure),
            _ if !observed.is_confirmed => return Action::Wait(CATCH_UP_INTERVAL),
            _ => return Action::Run(with_proof(patch, target, observed)),
        },
        (state, ..) => state,
    };
    report(observed, &state)
}

/// What is told of a command that is being deleted, and that somebody's finalizer keeps.
fn cancelled(has_run: bool, deletion: Deletion<'_>) -> Told {
    let what = if has_run { "it was carried out, and its effect remains" } else { "it is not carried out" };
    told(TERMINATING, format!("{}; {what}", deletion.message()))
}

/// The state of a command whose target could not be read or changed.
fn failed(failure: &Failure) -> State {
    State::Waiting(told(failure.reason, failure.message.clone()))
}

/// The patch of exactly this state of the target, with the proof: on another state, nothing was decided.
fn with_proof(mut patch: Value, target: &Target, observed: &Observed) -> Value {
    let ran = target.ran.with(recent(&observed.command));
    let metadata = &target.object["metadata"];
    patch["metadata"]["annotations"][keys::COMMANDS] = json!(ran.to_json());
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        if !metadata[field].is_null() {
            patch["metadata"][field] = metadata[field].clone();
        }
    }
    patch
}

fn report(observed: &Observed, state: &State) -> Action {
    let command = &observed.command;
    let new = status::status(observed, state);
    let rest = rest(observed, state);
    let is_held = observed.backoffs.everything().is_none() && observed.backoffs.holds(REPORT);
    if new == command.row.status || is_held {
        return Action::Wait(rest);
    }
    let left = BINDING_TIME.saturating_sub(time_between(created(command), observed.now));
    if waits_for(state, reason::NOT_BOUND) && !left.is_zero() {
        return Action::Wait(left.min(rest));
    }
    let since = observed.since_told.unwrap_or(PROGRESS_INTERVAL);
    let left = PROGRESS_INTERVAL.saturating_sub(since);
    if status::is_progress(&command.row.status, &new) && !left.is_zero() {
        return Action::Wait(left.min(rest));
    }
    Action::Report(Box::new(new))
}

/// The time until the command needs another pass, if nothing happens before.
fn rest(observed: &Observed, state: &State) -> Duration {
    let left = time_between(observed.now, observed.command.row.expires_at);
    let left = if left.is_zero() { LOOK_INTERVAL } else { left };
    // One before it may leave the line without an end, which wakes nobody.
    let may_be_next = waits_for(state, reason::QUEUED) || waits_for(state, reason::COMMANDS_NOT_OBSERVED);
    let is_looked_at = observed.needs_target() || may_be_next;
    if is_looked_at { left.min(LOOK_INTERVAL) } else { left }
}

fn waits_for(state: &State, wanted: &str) -> bool {
    matches!(state, State::Waiting(Told { reason, .. }) if **reason == *wanted)
}

/// Zero if the later time is before the earlier one.
fn time_between(earlier: Timestamp, later: Timestamp) -> Duration {
    Duration::try_from(later.duration_since(earlier)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
