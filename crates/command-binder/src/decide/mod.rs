//! Observed → Action. Pure.

mod telling;
mod verdict;

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use operator_kit::watch::ServedKind;

pub use verdict::{Verdict, place, verdict};

use crate::{observed::Observed, status};
use verdict::{Judgement, judge};

/// How often a target that is missing is looked up again at the most, should its arrival not be noticed.
const SOONEST: Duration = Duration::from_secs(5);
/// How often at the least.
const LATEST: Duration = Duration::from_secs(300);

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Tie the command to its target, in one write.
    Bind {
        /// The target's kind as it is served.
        kind: ServedKind,
        /// The target's uid.
        uid: Box<str>,
    },
    /// Write the condition `Bound`.
    Report(Box<Condition>),
    /// Tell people by an Event.
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
        Judgement::Bind(kind, uid) => Action::Bind { kind, uid },
        Judgement::Say(verdict) => say(observed, verdict),
    }
}

fn say(observed: &Observed, verdict: Verdict) -> Action {
    if observed.can_report {
        if let Some(condition) = status::changed(observed, &verdict) {
            return Action::Report(Box::new(condition));
        }
        return rest(&verdict, age(observed), None);
    }
    let due = telling::due(observed, &verdict);
    if due == Some(Duration::ZERO) { Action::Tell(verdict) } else { rest(&verdict, age(observed), due) }
}

/// How long a command has been there.
fn age(observed: &Observed) -> Duration {
    let created = observed.command.metadata.creation_timestamp.as_ref();
    created.map_or(Duration::ZERO, |created| {
        Duration::try_from(observed.now.duration_since(created.0)).unwrap_or_default()
    })
}

/// As long again as it has waited, and not longer than until something is due.
fn rest(verdict: &Verdict, age: Duration, due: Option<Duration>) -> Action {
    let look = verdict.may_pass.then(|| age.clamp(SOONEST, LATEST));
    look.into_iter().chain(due).min().map_or(Action::Settle, Action::Wait)
}

#[cfg(test)]
mod tests;
