//! Observed → Action. Pure.

mod action;
mod hold;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use operator_kit::run::Attempt;

pub use action::{Action, Release};

use crate::{
    annotation::State,
    backup::{Situation, Try, Verdict},
    finalizer,
    force_release::ForceRelease,
    observed::{Held, Observed, Selection},
    settings::ProtectedKind,
    status::Outcome,
};

/// The longest delay between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3600);

/// The next step for an object.
#[must_use]
pub fn decide(observed: &Observed) -> Action {
    let Some(kind) = &observed.kind else { return Action::Settle };
    if observed.target.metadata.deletion_timestamp.is_some() {
        // It does not matter whether it is still selected, because it was selected when it was deleted.
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
    if let ForceRelease::Granted(reason) = &held.force_release {
        return hold::release(observed, held, Outcome::Forced, None, reason);
    }
    let given_up = |last, why: &str| hold::release(observed, held, Outcome::GivenUp, last, why);
    match &held.situation {
        None => Action::Settle,
        Some(Situation::There { last, verdict: Verdict::Succeeded }) => {
            hold::release(observed, held, Outcome::BackedUp, Some(last), "the backup is proven")
        }
        Some(Situation::There { last, verdict }) => {
            if held.left(last.created, kind.deadline).is_zero() {
                return hold::overdue(observed, kind, held, last);
            }
            hold::running(observed, kind, held, last, verdict)
        }
        Some(Situation::Unfinished { last }) => hold::failed(observed, kind, held, last, held.now),
        Some(Situation::Failed { last, next, seen }) => {
            if let Some(why) = tried_in_vain(kind, held, *seen) {
                return given_up(Some(last), &why);
            }
            let due = retry_at(kind, held, last);
            match observed.attempt.failure() {
                // A read that fails meanwhile does not shorten the pause.
                _ if due > held.now => hold::failed(observed, kind, held, last, due),
                None => Action::Create(next.clone()),
                Some(failure) => hold::blocked(observed, held, last.attempt, failure),
            }
        }
        // One that was found before may still run.
        Some(Situation::Unusable(problem)) if !kind.protect && !held.had_a_backup() => given_up(
            None,
            &format!("its entry no longer protects objects, and no backup can be created: {problem}"),
        ),
        Some(without @ (Situation::Absent { .. } | Situation::Unusable(_))) => {
            if let Some(why) = tried_in_vain(kind, held, 0) {
                return given_up(None, &why);
            }
            let attempt = held.status.as_ref().map_or(1, |status| status.attempt);
            match (observed.attempt.failure(), without) {
                (Some(failure), _) => hold::blocked(observed, held, attempt, failure),
                (None, Situation::Absent { backup }) => Action::Create(backup.clone()),
                (None, Situation::Unusable(problem)) => Action::Refuse(problem.clone()),
                (None, _) => Action::Settle,
            }
        }
    }
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
            "{failed} backups failed or took too long, and {} were refused by the API server since this process leads",
            held.refusals
        )
    })
}

/// The time at which the next attempt is due: some time after the object first reported the failure. The report is on
/// the object, so that a crash does not shorten the pause.
fn retry_at(kind: &ProtectedKind, held: &Held, last: &Try) -> Timestamp {
    let doublings = last.attempt.saturating_sub(1).min(16);
    let pause = kind.retry_after.saturating_mul(1 << doublings).min(MAX_RETRY_DELAY);
    match held.status.as_ref().filter(|status| status.attempt == last.attempt) {
        Some(status) if status.state == State::Failed => end(status.since, pause),
        // Its creation was tried, and has its own backoff.
        Some(status) if status.state == State::Blocked => held.now,
        _ => end(held.now, pause),
    }
}

/// The end of a span.
fn end(since: Timestamp, span: Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    since.saturating_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
