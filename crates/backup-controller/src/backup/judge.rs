//! Judges whether an object that has the name of a backup is one, and its state.

use catena_api::{
    backup::OBJECT,
    keys::{BACKUP_OF, BACKUP_TARGET},
    reason,
};
use jiff::{SignedDuration, Timestamp};
use operator_templates::{Expression, ExpressionError};
use operator_watch::Failure;
use serde_json::Value;

use super::{Target, Verdict};
use crate::{
    metadata,
    settings::{Backup, TARGET},
};

/// The field manager of this controller.
const MANAGER: &str = env!("CARGO_PKG_NAME");
/// Maximum difference between the clocks of a cluster's API servers.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(10);

/// The reason why an object does not count as the wanted backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Its label or annotation does not name this object, attempt and policy.
    NotOfIt,
    /// It existed before the object was deleted.
    TooOld,
    /// Somebody else created it.
    NotOurs,
    /// It would be deleted with the object.
    Owned,
}

impl Doubt {
    /// The failure for the backup with this title.
    #[must_use]
    pub fn about(self, title: &str) -> Failure {
        let why = match self {
            Self::Owned => {
                let message = format!(
                    "{title} is owned by the object and would be deleted with it, so that it proves nothing; remove the owner reference, and find out who sets it"
                );
                return Failure::stalled(reason::BACKUP_HAS_OWNER, message);
            }
            Self::NotOfIt => "its label and annotation do not name this object, entry and attempt",
            Self::TooOld => "it was created before the object was deleted",
            Self::NotOurs => "its managedFields do not show that backup-controller created it",
        };
        let message = format!(
            "{title} exists, but does not count as the backup of this object: {why}; delete it, or change the name in the template"
        );
        Failure::stalled(reason::BACKUP_NAME_TAKEN, message)
    }
}

/// The reason why an object is not the wanted backup; `None` if it is.
#[must_use]
pub fn doubt(found: &Value, sought: &Target, target: &Value) -> Option<Doubt> {
    let uid = metadata::text(target, "uid");
    let about = metadata::entry(found, "annotations", BACKUP_TARGET);
    let about = about.and_then(|text| serde_json::from_str::<Target>(text).ok());
    let is_of_it = metadata::entry(found, "labels", BACKUP_OF) == Some(uid)
        && about.is_some_and(|about| about.is_same(sought));
    if !is_of_it {
        return Some(Doubt::NotOfIt);
    }
    let created = metadata::time(found, "creationTimestamp");
    let is_late =
        created.zip(asked_at(target)).is_some_and(|(created, asked)| created >= asked - CLOCK_TOLERANCE);
    if !is_late {
        return Some(Doubt::TooOld);
    }
    if !metadata::list(found, "managedFields").any(is_our_create) {
        return Some(Doubt::NotOurs);
    }
    let is_owned = metadata::list(found, "ownerReferences").any(|owner| owner["uid"] == uid);
    is_owned.then_some(Doubt::Owned)
}

/// The time of the deletion request of an object.
fn asked_at(object: &Value) -> Option<Timestamp> {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let grace = SignedDuration::from_secs(grace.unwrap_or_default());
    metadata::time(object, "deletionTimestamp")?.checked_sub(grace).ok()
}

/// Whether an entry of the managed fields comes from a create by this controller. Anybody who may create objects can
/// use any field manager, so this detects mistakes and copies, but no intent.
fn is_our_create(entry: &Value) -> bool {
    let annotation = ["fieldsV1", "f:metadata", "f:annotations", &format!("f:{BACKUP_TARGET}")];
    let owned = annotation.iter().try_fold(entry, |fields, field| fields.get(field));
    entry["manager"] == MANAGER && entry["operation"] == "Update" && owned.is_some()
}

/// The state of a backup. An unknown state counts as running.
#[must_use]
pub fn judge(backup: &Backup, object: &Value, target: &Value) -> Verdict {
    let ask = |expression: &Expression| -> Result<bool, ExpressionError> {
        expression.bool(&[(OBJECT, object), (TARGET, target)])
    };
    let failed = backup.failed.as_ref().map(ask);
    if failed == Some(Ok(true)) {
        return Verdict::Failed;
    }
    let succeeded = ask(&backup.succeeded);
    // What a Job has made is elsewhere, and stays. Any other backup goes with its object.
    let outlasts = backup.is_job() && succeeded == Ok(true);
    if metadata::is_deleted(object) && !outlasts {
        return Verdict::Going;
    }
    match succeeded {
        Ok(true) => Verdict::Succeeded,
        Ok(false) => {
            failed.and_then(Result::err).map_or(Verdict::Running(None), |error| without_value(&error))
        }
        Err(error) => without_value(&error),
    }
}

/// The verdict of an expression without a value. A missing field is normal at the begin of a backup.
fn without_value(error: &ExpressionError) -> Verdict {
    match error.missing() {
        Some(key) => {
            Verdict::Running(Some(format!("the field {key}, which {} reads, is not set yet", error.field)))
        }
        None => Verdict::Unclear(error.to_string()),
    }
}
