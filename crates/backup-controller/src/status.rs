//! Observed → the status of a held object. Pure.

use catena_api::{keys::FORCE_RELEASE, reason};
use jiff::{SignedDuration, Timestamp};
use operator_watch::{Failure, ObjectId};

use crate::{
    annotation::{BackupStatus, LastAttempt, State},
    backup::{Situation, Try, Verdict},
    force_release::ForceRelease,
    observed::{Held, Observed},
    settings::ProtectedKind,
};

/// Time in which the controller of a backup usually reports a first state.
const CLEAR_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// The reason for a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its backup is proven.
    BackedUp,
    /// No backup is proven, and the settings allow a release without one.
    GivenUp,
    /// Somebody releases it.
    Forced,
}

/// A backup is running.
#[must_use]
pub fn running(observed: &Observed, held: &Held, last: &Try, verdict: &Verdict) -> BackupStatus {
    let (reason, message) = match verdict {
        Verdict::Going => (
            reason::BACKUP_BEING_DELETED,
            "the backup is being deleted; another one is created once it is gone".to_owned(),
        ),
        Verdict::Running(Some(note)) => (reason::BACKUP_RUNNING, format!("waiting for the backup: {note}")),
        Verdict::Unclear(why) => {
            // Fields may come empty first.
            let is_new = held.now.duration_since(last.created) < CLEAR_WITHIN;
            let reason = if is_new { reason::BACKUP_RUNNING } else { reason::BACKUP_UNCLEAR };
            (reason, format!("waiting for the backup: {why}"))
        }
        _ => (reason::BACKUP_RUNNING, "waiting for the backup".to_owned()),
    };
    status(observed, held, State::BackingUp, last.attempt, Some(last), reason, message)
}

/// A backup is about to be created, and may be gone before it is seen.
#[must_use]
pub fn begun(observed: &Observed, kind: &ProtectedKind, held: &Held, last: &Try) -> BackupStatus {
    let begun = Some(LastAttempt { policy: kind.policy.clone(), last: last.attempt });
    BackupStatus { begun, ..running(observed, held, last, &Verdict::Running(None)) }
}

/// A backup takes too long, and the object is held.
#[must_use]
pub fn overdue(observed: &Observed, kind: &ProtectedKind, held: &Held, last: &Try) -> BackupStatus {
    let message = format!(
        "the backup did not finish within {:?}, and the object is still held: fix the backup, or delete it to have another one created, or release the object without a backup with the annotation {}",
        kind.deadline,
        release(observed)
    );
    status(observed, held, State::Overdue, last.attempt, Some(last), reason::BACKUP_OVERDUE, message)
}

/// A backup failed or was given up, and the next attempt has to wait.
#[must_use]
pub fn failed(
    observed: &Observed,
    kind: &ProtectedKind,
    held: &Held,
    last: &Try,
    due: Timestamp,
) -> BackupStatus {
    let (reason, failure) = if last.has_vanished {
        let failure = "the backup of this attempt is missing, and its outcome was never seen: let the template set a longer ttlSecondsAfterFinished";
        (reason::BACKUP_VANISHED, failure.to_owned())
    } else if last.is_given_up {
        let failure =
            format!("the backup did not finish within {:?}, and counts as a failed try", kind.deadline);
        (reason::BACKUP_OVERDUE, failure)
    } else {
        (reason::BACKUP_FAILED, "the backup failed".to_owned())
    };
    let message = format!(
        "{failure}; the next attempt is due at {due:.0}: fix the cause, or release the object without a backup with the annotation {}",
        release(observed)
    );
    status(observed, held, State::Failed, last.attempt, Some(last), reason, message)
}

/// A backup cannot be created. One that was found before may still run.
#[must_use]
pub fn blocked(observed: &Observed, held: &Held, attempt: u32, failure: &Failure) -> BackupStatus {
    let blocked =
        status(observed, held, State::Blocked, attempt, None, failure.reason, failure.message.clone());
    BackupStatus { backup: held.status.as_ref().and_then(|status| status.backup.clone()), ..blocked }
}

/// The object is released.
#[must_use]
pub fn released(
    observed: &Observed,
    held: &Held,
    outcome: Outcome,
    last: Option<&Try>,
    why: &str,
) -> BackupStatus {
    let reason = match outcome {
        Outcome::BackedUp => "BackedUp",
        Outcome::GivenUp => "ReleasedWithoutBackup",
        Outcome::Forced => "ForceReleased",
    };
    let attempt =
        last.map_or_else(|| held.status.as_ref().map_or(1, |status| status.attempt), |last| last.attempt);
    status(observed, held, State::Released, attempt, last, reason, why.to_owned())
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
    let message = match held.force_release {
        ForceRelease::Unproven => format!(
            "{message}; its annotation {FORCE_RELEASE} does not give the uid of this object and a reason, and may have been copied from another one: to release this one without a backup, run {}",
            command(observed)
        ),
        ForceRelease::Unasked | ForceRelease::Granted(_) => message,
    };
    BackupStatus {
        uid,
        state,
        entry,
        attempt,
        backup: last.map(Try::title),
        failed: failed_attempts(observed, held),
        begun: held.status.as_ref().and_then(|status| status.begun.clone()),
        since: held.now,
        reason: reason.to_owned(),
        message,
    }
}

/// The annotation that releases an object without a backup.
fn release(observed: &Observed) -> String {
    format!("{FORCE_RELEASE}: {} <reason>", ObjectId::of(&*observed.target).uid)
}

/// The command that sets it.
fn command(observed: &Observed) -> String {
    let ObjectId { namespace, name, uid } = ObjectId::of(&*observed.target);
    let kind = observed.kind.as_ref().map(|kind| kind.resource_id()).unwrap_or_default();
    let namespace = if namespace.is_empty() { String::new() } else { format!(" --namespace {namespace}") };
    format!("kubectl annotate --overwrite{namespace} {kind} {name} {FORCE_RELEASE}='{uid} <reason>'")
}

/// The failed attempts by the present policy.
fn failed_attempts(observed: &Observed, held: &Held) -> Option<LastAttempt> {
    let policy = &observed.kind.as_ref()?.policy;
    let before = held.status.as_ref().map_or(0, |status| status.failed_by(policy));
    let last = match &held.situation {
        Some(Situation::Failed { last, .. } | Situation::Unfinished { last }) => last.attempt.max(before),
        _ => before,
    };
    (last > 0).then(|| LastAttempt { policy: policy.clone(), last })
}

#[cfg(test)]
mod tests;
