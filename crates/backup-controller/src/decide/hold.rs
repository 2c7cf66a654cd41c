//! What is said of an object that is held, and when it is looked at again.

use std::time::Duration;

use jiff::Timestamp;
use operator_kit::report::Failure;

use super::{Action, Outcome, Release, left};
use crate::{
    backup::{Try, Verdict},
    observe::{Held, Observed},
    settings::ProtectedKind,
    status::{BackupStatus, FORMER_BACKUP, State},
};

/// A running backup is looked at this often also when nobody tells of it.
const RECHECK: Duration = Duration::from_secs(30);
/// What ends sooner is not worth a write that says so.
const BRIEFLY: Duration = Duration::from_secs(3);

/// A backup is under way.
pub(super) fn running(
    observed: &Observed,
    kind: &ProtectedKind,
    held: &Held,
    last: &Try,
    verdict: &Verdict,
) -> Action {
    let (reason, message) = match verdict {
        Verdict::Going => (
            "BackupBeingDeleted",
            "the backup is being deleted; another one is made when it is gone".to_owned(),
        ),
        Verdict::Running(Some(note)) => ("BackupRunning", format!("waiting for the backup; so far, {note}")),
        _ => ("BackupRunning", "waiting for the backup".to_owned()),
    };
    let status = status(observed, held, State::BackingUp, last.attempt, Some(last), reason, message);
    let briefly = left(last.created, BRIEFLY, held.now);
    let again = left(last.created, kind.deadline, held.now).min(RECHECK);
    if held.status.is_none() && !briefly.is_zero() {
        return Action::Hold { status, tell: false, again: briefly.min(again) };
    }
    hold(held, status, again)
}

/// One that proves nothing is under way.
pub(super) fn former(observed: &Observed, kind: &ProtectedKind, held: &Held, last: &Try) -> Action {
    let message = "waiting for the end of a backup that does not say which settings it is by, and so proves nothing; \
                   another one is made then";
    let status =
        status(observed, held, State::BackingUp, last.attempt, Some(last), FORMER_BACKUP, message.to_owned());
    let again = left(last.created, kind.deadline, held.now).min(RECHECK);
    hold(held, status, again)
}

/// A backup takes too long, and the object is held.
pub(super) fn overdue(observed: &Observed, kind: &ProtectedKind, held: &Held, last: &Try) -> Action {
    let message = format!(
        "the backup has not ended within {:?}; it is still waited for: mend it, or delete it to have another one made, \
         or let the object go without a backup with the annotation catena.dev/force-release: <reason>",
        kind.deadline
    );
    let status = status(observed, held, State::Overdue, last.attempt, Some(last), "BackupOverdue", message);
    hold(held, status, RECHECK)
}

/// A backup failed, and its successor has to wait.
pub(super) fn failed(observed: &Observed, held: &Held, last: &Try, due: Timestamp) -> Action {
    let message = format!(
        "the backup failed; the next one is tried at {due:.0}: mend what made it fail, or let the object go without a \
         backup with the annotation catena.dev/force-release: <reason>"
    );
    let status = status(observed, held, State::Failed, last.attempt, Some(last), "BackupFailed", message);
    hold(held, status, Duration::try_from(due.duration_since(held.now)).unwrap_or_default())
}

/// A backup cannot be made.
pub(super) fn blocked(observed: &Observed, held: &Held, attempt: u32, failure: &Failure) -> Action {
    let status =
        status(observed, held, State::Blocked, attempt, None, failure.reason, failure.message.clone());
    hold(held, status, RECHECK)
}

/// Nothing holds it any more.
pub(super) fn release(
    observed: &Observed,
    held: &Held,
    outcome: Outcome,
    last: Option<&Try>,
    why: &str,
) -> Action {
    let reason = match outcome {
        Outcome::BackedUp => "BackedUp",
        Outcome::GivenUp => "ReleasedWithoutBackup",
        Outcome::Forced => "ForceReleased",
    };
    let attempt =
        last.map_or_else(|| held.status.as_ref().map_or(1, |status| status.attempt), |last| last.attempt);
    let status = status(observed, held, State::Released, attempt, last, reason, why.to_owned());
    Action::Release(Release { outcome, status })
}

fn hold(held: &Held, status: BackupStatus, again: Duration) -> Action {
    let status = status.continuing(held.status.as_ref());
    let tell = held.status.as_ref() != Some(&status);
    Action::Hold { status, tell, again }
}

fn status(
    observed: &Observed,
    held: &Held,
    state: State,
    attempt: u32,
    last: Option<&Try>,
    reason: &str,
    message: String,
) -> BackupStatus {
    let uid = observed.target.metadata.uid.clone().unwrap_or_default();
    let entry = observed.kind.as_ref().map(|kind| kind.id.clone()).unwrap_or_default();
    let ignored = held.force_release.ignored();
    let message = match ignored {
        Some(_) => format!(
            "{message}; its annotation catena.dev/force-release was there before it was held, and may be another \
             object's: to let this one go without a backup, set it to {:?}",
            format!("{uid} <reason>")
        ),
        None => message,
    };
    BackupStatus {
        uid,
        state,
        entry,
        attempt,
        backup: last.map(|last| last.title.clone()),
        ignored_release: ignored.map(str::to_owned),
        since: held.now,
        reason: reason.to_owned(),
        message,
    }
}
