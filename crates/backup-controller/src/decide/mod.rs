//! Observed → Action. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use operator_watch::Failure;
use serde_json::Value;

use crate::{
    annotation::{BackupStatus, State},
    backup::{Situation, Try, Verdict, is_short_lived},
    finalizer,
    force_release::ForceRelease,
    observed::{Held, Observed},
    settings::ProtectedKind,
    status::{self, Outcome},
};

/// The longest delay between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3600);
/// Time between checks of a running backup without events.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// Minimum duration of a state that is worth a write.
const TELL_DELAY: Duration = Duration::from_secs(3);

/// One step for an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Add our finalizer.
    Protect,
    /// Report that an object, which has our finalizer by now, cannot be backed up.
    Warn(Failure),
    /// Remove our finalizer from an object that is not to be protected, and is not being deleted.
    TakeBack,
    /// Record with this status that a backup is about to be created, because it may be gone before it is seen.
    Begin(BackupStatus),
    /// Create a backup.
    Create(Value),
    /// Report that there is nothing to create.
    Refuse(Failure),
    /// Remove our finalizer from an object that is being deleted.
    Release {
        /// The reason for the release.
        outcome: Outcome,
        /// The reported status.
        status: BackupStatus,
    },
    /// Keep holding it.
    Hold {
        /// Why.
        status: BackupStatus,
        /// Whether the status is to be written to the object.
        tell: bool,
        /// The time until the next check, if nothing happens before.
        again: Duration,
    },
    /// Nothing is left to do.
    Settle,
}

/// The next step for an object.
#[must_use]
pub fn decide(observed: &Observed) -> Action {
    let Some(kind) = &observed.kind else { return Action::Settle };
    if observed.target.metadata.deletion_timestamp.is_some() {
        // It does not matter whether it is still selected, because it was selected when it was deleted.
        return observed.held.as_ref().map_or(Action::Settle, |held| let_go(observed, kind, held));
    }
    if let Some(problem) = &observed.excess {
        return Action::Warn(problem.clone());
    }
    let is_protected = finalizer::is_there(&observed.target.row.finalizers);
    if is_protected == observed.is_selected || !observed.backoffs.is_empty() {
        Action::Settle
    } else if is_protected {
        Action::TakeBack
    } else {
        Action::Protect
    }
}

fn let_go(observed: &Observed, kind: &ProtectedKind, held: &Held) -> Action {
    if let ForceRelease::Granted(reason) = &held.force_release {
        return release(observed, held, Outcome::Forced, None, reason);
    }
    let given_up = |last, why: &str| release(observed, held, Outcome::GivenUp, last, why);
    let blocked = |attempt, failure| blocked(observed, held, attempt, failure);
    match &held.situation {
        None => Action::Settle,
        Some(Situation::There { last, verdict: Verdict::Succeeded }) => {
            release(observed, held, Outcome::BackedUp, Some(last), "the backup is proven")
        }
        Some(Situation::There { last, verdict }) => running(observed, kind, held, last, verdict),
        Some(Situation::Unfinished { last }) => failed(observed, kind, held, last, held.now),
        Some(Situation::Failed { last, next, seen }) => {
            if let Some(why) = tried_in_vain(kind, held, *seen) {
                return given_up(Some(last), &why);
            }
            let due = retry_at(kind, held, last);
            match observed.backoffs.failure() {
                // A read that fails meanwhile does not shorten the pause.
                _ if due > held.now => failed(observed, kind, held, last, due),
                None => create(observed, kind, held, last.attempt + 1, next),
                Some(failure) => blocked(last.attempt, failure),
            }
        }
        // One that was found before may still run.
        Some(Situation::Unusable(problem))
            if !kind.protect
                && (!held.had_a_backup() || held.left(held.told_since(), kind.deadline).is_zero()) =>
        {
            let why = "its entry no longer protects objects, and no backup can be created";
            given_up(None, &format!("{why}: {}", problem.message))
        }
        Some(Situation::Unread) => unread(observed, kind, held),
        Some(without @ (Situation::Absent { .. } | Situation::Unusable(_))) => {
            if let Some(why) = tried_in_vain(kind, held, 0) {
                return given_up(None, &why);
            }
            let attempt = held.status.as_ref().map_or(1, |status| status.attempt);
            match (observed.backoffs.failure(), without) {
                (Some(failure), _) => blocked(attempt, failure),
                (None, Situation::Absent { attempt, backup }) => {
                    create(observed, kind, held, *attempt, backup)
                }
                (None, Situation::Unusable(problem)) => Action::Refuse(problem.clone()),
                (None, _) => Action::Settle,
            }
        }
    }
}

fn blocked(observed: &Observed, held: &Held, attempt: u32, failure: &Failure) -> Action {
    hold(held, status::blocked(observed, held, attempt, failure), LOOK_INTERVAL)
}

/// A backup cannot be read: for a moment, or for as long as nobody mends what the failure says.
fn unread(observed: &Observed, kind: &ProtectedKind, held: &Held) -> Action {
    match (&held.status, observed.backoffs.everything()) {
        (Some(status), _)
            if status.state == State::Failed
                && !held.left(status.since, pause_after(kind, status.attempt)).is_zero() =>
        {
            hold(held, status.clone(), LOOK_INTERVAL)
        }
        (Some(status), _)
            if status.state == State::Blocked
                && !kind.protect
                && held.left(status.since, kind.deadline).is_zero() =>
        {
            let why = "its entry no longer protects objects, and its backup cannot be read";
            release(observed, held, Outcome::GivenUp, None, why)
        }
        (status, Some(failure)) => {
            blocked(observed, held, status.as_ref().map_or(1, |status| status.attempt), failure)
        }
        (_, None) => Action::Settle,
    }
}

/// Creates a backup. One that deletes itself is recorded before: the next leader could not tell whether it was created.
fn create(observed: &Observed, kind: &ProtectedKind, held: &Held, attempt: u32, backup: &Value) -> Action {
    if is_short_lived(backup) && held.begun_by(&kind.policy) < attempt {
        let last = Try::new(&kind.backup, attempt, backup, held.now);
        return Action::Begin(status::begun(observed, kind, held, &last));
    }
    Action::Create(backup.clone())
}

/// A backup is running, or takes too long.
fn running(observed: &Observed, kind: &ProtectedKind, held: &Held, last: &Try, verdict: &Verdict) -> Action {
    let left = held.left(last.created, kind.deadline);
    if left.is_zero() {
        return hold(held, status::overdue(observed, kind, held, last), LOOK_INTERVAL);
    }
    let (status, again) = (status::running(observed, held, last, verdict), left.min(LOOK_INTERVAL));
    let briefly = held.left(last.created, TELL_DELAY);
    if held.status.is_none() && !briefly.is_zero() {
        return Action::Hold { status, tell: false, again: briefly.min(again) };
    }
    hold(held, status, again)
}

/// A backup failed or was given up, and the next attempt has to wait.
fn failed(observed: &Observed, kind: &ProtectedKind, held: &Held, last: &Try, due: Timestamp) -> Action {
    let pause = Duration::try_from(due.duration_since(held.now)).unwrap_or_default();
    hold(held, status::failed(observed, kind, held, last, due), pause)
}

fn release(observed: &Observed, held: &Held, outcome: Outcome, last: Option<&Try>, why: &str) -> Action {
    Action::Release { outcome, status: status::released(observed, held, outcome, last, why) }
}

fn hold(held: &Held, status: BackupStatus, again: Duration) -> Action {
    let status = status.continuing(held.status.as_ref());
    let tell = held.status.as_ref() != Some(&status) || held.tell_again == Some(Duration::ZERO);
    let again = held.tell_again.map_or(again, |tell_again| again.min(tell_again));
    Action::Hold { status, tell, again }
}

/// The reason why an object may be released now, after all attempts of the settings were in vain. Only a backup that
/// was created and failed or took too long, or that the server refused, is an attempt; failed reads and times without a running
/// controller are not. A refused backup may be granted later, so the deadline has to pass as well.
fn tried_in_vain(kind: &ProtectedKind, held: &Held, failed: u32) -> Option<String> {
    let tries = if kind.protect { kind.tries } else { 1 };
    let is_overdue = !kind.protect || held.left(held.since, kind.deadline).is_zero();
    let all = failed.saturating_add(held.refusals);
    let is_enough = failed >= tries || (held.refusals > 0 && all >= tries && is_overdue);
    (!kind.always_holds() && is_enough).then(|| {
        format!(
            "of its backups, {failed} failed or took too long, and the API server refused {} since this process leads",
            held.refusals
        )
    })
}

/// The time at which the next attempt is due: some time after the object first reported the failure. The report is on
/// the object, so that a crash does not shorten the pause.
fn retry_at(kind: &ProtectedKind, held: &Held, last: &Try) -> Timestamp {
    if held.begun_by(&kind.policy) > last.attempt {
        // The next one was recorded when it was due.
        return held.now;
    }
    let pause = pause_after(kind, last.attempt);
    match held.status.as_ref().filter(|status| status.attempt == last.attempt) {
        Some(status) if status.state == State::Failed => end(status.since, pause),
        // Its failure was told, and the creation of the next one, which has its own backoff, was tried.
        Some(status) if status.state == State::Blocked && status.failed_by(&kind.policy) >= last.attempt => {
            held.now
        }
        _ => end(held.now, pause),
    }
}

/// The pause after a failed attempt.
fn pause_after(kind: &ProtectedKind, attempt: u32) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    kind.retry_after.saturating_mul(1 << doublings).min(MAX_RETRY_DELAY)
}

/// The end of a span.
fn end(since: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    since.saturating_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
