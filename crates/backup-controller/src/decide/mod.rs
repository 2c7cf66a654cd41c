//! Observed → Action. Pure.

mod hold;

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use operator_kit::Attempt;
use serde_json::Value;

use crate::{
    backup::{Situation, Try, Verdict},
    error::Unusable,
    finalizer,
    observe::{Held, Observed, Selection},
    settings::{OnFailure, ProtectedKind},
    status::{BackupStatus, State},
};

/// The longest time between two tries.
const LONGEST_RETRY: Duration = Duration::from_secs(3600);

/// One step for an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on.
    Protect,
    /// Take our finalizer from what is not to be protected, and is not being deleted.
    TakeBack,
    /// Create a backup.
    Create(Value),
    /// Report that there is nothing to create.
    Refuse(Unusable),
    /// Take our finalizer from what is being deleted.
    Release(Release),
    /// Leave it held.
    Hold {
        /// Why.
        status: BackupStatus,
        /// Whether the object does not say so yet, and is to.
        tell: bool,
        /// When to look again, if nothing happens before.
        again: Duration,
    },
    /// Nothing is left to do.
    Settle,
}

/// How an object is let go.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Why it may go.
    pub outcome: Outcome,
    /// What is said about it.
    pub status: BackupStatus,
}

/// Why an object may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its backup is proven.
    BackedUp,
    /// No backup is proven, and the settings say to let it go then.
    GivenUp,
    /// Somebody lets it go.
    Forced,
}

/// The next step for an object.
pub fn decide(observed: &Observed) -> Action {
    let Some(kind) = &observed.kind else { return Action::Settle };
    if observed.target.metadata.deletion_timestamp.is_some() {
        // Whether it is still selected does not matter: it was when it was deleted.
        return observed.held.as_ref().map_or(Action::Settle, |held| let_go(observed, kind, held));
    }
    let is_protected = finalizer::is_there(&observed.target.row.finalizers);
    match (observed.selection, is_protected) {
        (Selection::Selected, false) | (Selection::NotSelected, true)
            if observed.attempt != Attempt::Allowed =>
        {
            Action::Settle
        }
        (Selection::Selected, false) => Action::Protect,
        (Selection::NotSelected, true) => Action::TakeBack,
        (Selection::Selected, true) | (Selection::NotSelected, false) => Action::Settle,
    }
}

fn let_go(observed: &Observed, kind: &ProtectedKind, held: &Held) -> Action {
    let now = observed.now;
    if let Some(reason) = &held.force_release {
        return hold::release(observed, held, Outcome::Forced, None, reason);
    }
    let gives_up = kind.on_failure == OnFailure::Release;
    match &held.situation {
        None => Action::Settle,
        Some(Situation::There { last, verdict: Verdict::Succeeded }) => {
            hold::release(observed, held, Outcome::BackedUp, Some(last), "the backup is proven")
        }
        Some(Situation::There { last, verdict }) => {
            if left(last.created, kind.deadline, now).is_zero() {
                if gives_up {
                    let why = format!("the backup took longer than {:?}", kind.deadline);
                    return hold::release(observed, held, Outcome::GivenUp, Some(last), &why);
                }
                return hold::overdue(observed, kind, held, last);
            }
            hold::running(observed, kind, held, last, verdict)
        }
        Some(Situation::Failed { last, .. }) if gives_up && last.attempt >= kind.tries => {
            let why = format!("{} backups failed", last.attempt);
            hold::release(observed, held, Outcome::GivenUp, Some(last), &why)
        }
        Some(Situation::Failed { last, next }) => {
            let due = retry_at(kind, held, last, now);
            match observed.attempt.failure() {
                None if due <= now => Action::Create(next.clone()),
                None => hold::failed(observed, held, last, due),
                Some(failure) => hold::blocked(observed, held, last.attempt, failure),
            }
        }
        Some(without @ (Situation::Absent { .. } | Situation::Unusable(_))) => {
            // Not before it was tried: the controller may not have run for all that time.
            let was_tried = observed.attempt != Attempt::Allowed;
            if gives_up && was_tried && left(held.since, kind.deadline, now).is_zero() {
                let why = format!("no backup could be made within {:?}", kind.deadline);
                return hold::release(observed, held, Outcome::GivenUp, None, &why);
            }
            let attempt = held.status.as_ref().map_or(1, |status| status.attempt);
            match (observed.attempt.failure(), without) {
                (Some(failure), _) => hold::blocked(observed, held, attempt, failure),
                (None, Situation::Absent { backup, .. }) => Action::Create(backup.clone()),
                (None, Situation::Unusable(problem)) => Action::Refuse(problem.clone()),
                (None, _) => Action::Settle,
            }
        }
    }
}

/// When the successor of a failed try is due: some time after the object first said that it failed. What says so is on
/// the object, so that a crash does not shorten it.
fn retry_at(kind: &ProtectedKind, held: &Held, last: &Try, now: Timestamp) -> Timestamp {
    let doublings = last.attempt.saturating_sub(1).min(16);
    let pause = kind.retry_after.saturating_mul(1 << doublings).min(LONGEST_RETRY);
    match held.status.as_ref().filter(|status| status.attempt == last.attempt) {
        Some(status) if status.state == State::Failed => end(status.since, pause),
        // Its creation was tried, and backs off by itself.
        Some(status) if status.state == State::Blocked => now,
        _ => end(now, pause),
    }
}

/// What is left of a span that began at a time.
fn left(since: Timestamp, span: Duration, now: Timestamp) -> Duration {
    let passed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    span.saturating_sub(passed)
}

/// The end of a span.
fn end(since: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    since.saturating_add(span).unwrap_or(Timestamp::MAX)
}
