//! Observed → Action. Pure.

pub mod judge;

use std::time::Duration;

use catena_api::{
    CommandStatus,
    deletion::{Deletion, TERMINATING},
    reason,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use operator_kit::report::StatusAge;
use operator_watch::Failure;
use serde_json::Value;

use crate::{
    command::recent,
    observed::{Look, Observed},
    status,
};
use judge::{Verdict, judge};

/// The step of running a command: its failure holds up only the same step.
pub const RUN: &str = "run";
/// The step of reporting on it.
pub const REPORT: &str = "report";

/// Time between looks at a target whose changes may go unnoticed, or at which a rule may compare the time.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// Time between looks while a command waits for what may be there at any moment, and what no watch shows, such as a kind that is not
/// served yet: most of them make no request.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Age from which it is reported that a command is not bound: most are bound before.
const BINDING_TIME: Duration = Duration::from_secs(10);
/// Age from which it is reported that other commands are carried out first: most wait for less, and the status of a new one is written
/// by command-binder, too.
const QUEUING_TIME: Duration = Duration::from_secs(3);

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
        return Action::Wait(RETRY_INTERVAL);
    }
    if let Some(since) = &command.metadata.deletion_timestamp {
        let deletion = Deletion::new(since, &row.finalizers);
        return match deletion.due_in(observed.now) {
            Some(left) => Action::Wait(left),
            None => report(observed, &cancelled(observed.has_run(), deletion)),
        };
    }
    if let Look::Later(time) = observed.target {
        return Action::Wait(time.min(RETRY_INTERVAL));
    }
    // Only its target tells whether it ran, and has succeeded.
    let is_blind = observed.found().is_none() && row.target_id().is_some();
    let verdict = match (judge(observed), observed.backoffs.everything().filter(|_| is_blind)) {
        (Err(_), Some(failure)) => failed(failure),
        (Err(verdict), None) => verdict,
        (Ok(patch), _) => match observed.backoffs.step_failure(RUN) {
            Some(failure) if !failure.is_expected => failed(failure),
            _ => return Action::Run(patch),
        },
    };
    report(observed, &verdict)
}

/// What is told of a command that is being deleted, and that somebody's finalizer keeps.
fn cancelled(has_run: bool, deletion: Deletion<'_>) -> Verdict {
    let what = if has_run { "it was carried out, and its effect remains" } else { "it is not carried out" };
    Verdict::waits(TERMINATING, format!("{}; {what}", deletion.message()))
}

/// What is told of a command whose target could not be read or changed.
fn failed(failure: &Failure) -> Verdict {
    Verdict::waits(failure.reason, failure.message.as_str())
}

fn report(observed: &Observed, verdict: &Verdict) -> Action {
    let before = observed.command.row.report(observed.takes_status);
    let new = status::status(observed, verdict);
    let rest = rest(observed, &verdict.reason);
    let is_held = observed.backoffs.everything().is_none() && observed.backoffs.is_backing_off(REPORT);
    if new == *before || is_held {
        return Action::Wait(rest);
    }
    let told_at = match &*verdict.reason {
        reason::NOT_BOUND => BINDING_TIME,
        reason::QUEUED => QUEUING_TIME,
        _ => Duration::ZERO,
    };
    let left = told_at.saturating_sub(time_between(recent(&observed.command).created.0, observed.now));
    if !left.is_zero() {
        return Action::Wait(left.min(rest));
    }
    // Mere numbers are gathered, also those in messages.
    let is_progress = new.completion_time.is_none()
        && before.start_time == new.start_time
        && before.conditions.iter().map(state).eq(new.conditions.iter().map(state));
    let told = observed.since_told.filter(|_| is_progress);
    match told.and_then(|since| StatusAge::Written(since).due_in(StatusAge::STABLE)) {
        Some(left) => Action::Wait(left.min(rest)),
        None => Action::Report(Box::new(new)),
    }
}

/// What a condition tells, without its words.
fn state(condition: &Condition) -> [&str; 3] {
    [&condition.type_, &condition.status, &condition.reason]
}

/// The time until the command needs another pass, if nothing happens before.
fn rest(observed: &Observed, reason: &str) -> Duration {
    let left = time_between(observed.now, observed.command.row.expires_at);
    let left = if left.is_zero() { LOOK_INTERVAL } else { left };
    if observed.command.row.target_id().is_none() {
        return left;
    }
    left.min(match reason {
        reason::COMMANDS_NOT_OBSERVED | reason::KIND_NOT_SERVED | reason::SCOPE_MISMATCH => RETRY_INTERVAL,
        _ => LOOK_INTERVAL,
    })
}

/// Zero if the later time is before the earlier one.
fn time_between(earlier: Timestamp, later: Timestamp) -> Duration {
    Duration::try_from(later.duration_since(earlier)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
