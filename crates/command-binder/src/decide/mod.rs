//! Observed → Action. Pure.

mod judge;
mod telling;

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};

use crate::{observed::Observed, status, verdict::Verdict};
use judge::{Judgement, judge};

/// Shortest time between look-ups of a missing target, in case its arrival is not noticed.
const MIN_LOOK_UP_INTERVAL: Duration = Duration::from_secs(5);
/// Longest time between these look-ups.
const MAX_LOOK_UP_INTERVAL: Duration = Duration::from_secs(300);

/// Time until another look while it is unknown how a verdict is reported.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(15);

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Bind the command to its target, which is this owner, in one write.
    Bind(OwnerReference),
    /// Write the condition `Bound`.
    Report(Box<Condition>),
    /// Report by an Event.
    Tell(Verdict),
    /// Look again after this time.
    Wait(Duration),
    /// Nothing, until something changes.
    Settle,
}

/// The next step for a command.
#[must_use]
pub fn decide(observed: &Observed) -> Action {
    match judge(observed) {
        Judgement::Ignore => Action::Settle,
        Judgement::Bind(owner) => Action::Bind(owner),
        Judgement::Say(verdict) => say(observed, verdict),
    }
}

fn say(observed: &Observed, verdict: Verdict) -> Action {
    let Some(can_report) = observed.can_report else { return Action::Wait(UNKNOWN_INTERVAL) };
    if can_report {
        if let Some(condition) = status::changed(observed, &verdict) {
            return Action::Report(Box::new(condition));
        }
        return rest(&verdict, observed.age(), None);
    }
    let due = telling::due(observed, &verdict);
    if due == Some(Duration::ZERO) { Action::Tell(verdict) } else { rest(&verdict, observed.age(), due) }
}

/// Waits as long again as the command has existed, but only until something is due.
fn rest(verdict: &Verdict, age: Duration, due: Option<Duration>) -> Action {
    let look = verdict.may_pass.then(|| age.clamp(MIN_LOOK_UP_INTERVAL, MAX_LOOK_UP_INTERVAL));
    look.into_iter().chain(due).min().map_or(Action::Settle, Action::Wait)
}

#[cfg(test)]
mod tests;
