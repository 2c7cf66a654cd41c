//! Observed → Action. Pure.

mod judge;

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};

use crate::{command::Finding, observed::Observed, status, verdict::Verdict};
use judge::judge;

/// Shortest time between look-ups of a missing target, in case its arrival is not noticed.
const MIN_LOOK_UP_INTERVAL: Duration = Duration::from_secs(5);
/// Longest time between these look-ups.
const MAX_LOOK_UP_INTERVAL: Duration = Duration::from_secs(300);
/// The default lifetime of Events in the API server.
const EVENT_LIFETIME: Duration = Duration::from_secs(3600);

/// Time until another look while it is unknown how a verdict is reported.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(15);

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Bind the command to its target, which is this owner, in one write.
    Bind(OwnerReference),
    /// Give the reference that bound the command the version of this one.
    Refresh(OwnerReference),
    /// Write the condition `Bound`.
    Report(Box<Condition>),
    /// Report by an Event, unless the reason was reported a short time ago.
    Tell {
        /// The reason and the message.
        verdict: Verdict,
        /// Look again after this time.
        look_in: Option<Duration>,
    },
    /// Look again after this time.
    Wait(Duration),
    /// Nothing, until something changes.
    Settle,
}

/// The next step for a command: a chain of checks; the first that applies decides.
#[must_use]
pub fn decide(observed: &Observed) -> Action {
    let (row, metadata) = (&observed.command.row, &observed.command.metadata);
    if row.finding == Finding::Settled || metadata.deletion_timestamp.is_some() {
        return Action::Settle;
    }
    if let Some(failure) = observed.backoffs.failure() {
        let is_bound = matches!(&row.finding, Finding::Target(to) if row.proven_target(to, false).is_some());
        // It stays bound although its reference could not be refreshed.
        if is_bound && !row.is_in_watched_version() {
            return Action::Settle;
        }
        return say(observed, Verdict::refused(failure.reason, failure.message.clone()));
    }
    match &row.finding {
        Finding::Settled => Action::Settle,
        Finding::Unfit(verdict) => say(observed, verdict.clone()),
        Finding::Target(to) => judge(observed, to).unwrap_or_else(|verdict| say(observed, verdict)),
    }
}

fn say(observed: &Observed, verdict: Verdict) -> Action {
    let Some(can_report) = observed.can_report else { return Action::Wait(UNKNOWN_INTERVAL) };
    // It waits as long again as the command has existed.
    let look_in = verdict.may_pass.then(|| observed.age().clamp(MIN_LOOK_UP_INTERVAL, MAX_LOOK_UP_INTERVAL));
    if can_report && let Some(condition) = status::changed(observed, &verdict) {
        return Action::Report(Box::new(condition));
    }
    if !can_report && is_worth_an_event(observed, &verdict) {
        return Action::Tell { verdict, look_in };
    }
    look_in.map_or(Action::Settle, Action::Wait)
}

/// A command that would be bound is no problem, and failures are reported elsewhere.
fn is_worth_an_event(observed: &Observed, verdict: &Verdict) -> bool {
    let is_noise = verdict.reason == "WouldBind" && observed.age() >= EVENT_LIFETIME;
    !verdict.is_bound && !is_noise && observed.backoffs.failure().is_none()
}

#[cfg(test)]
mod tests;
