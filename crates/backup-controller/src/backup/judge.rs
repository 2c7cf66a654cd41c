//! Whether what was found under the name of a backup is one, and how it fares.

use catena_api::keys::{BACKUP_OF, BACKUP_TARGET};
use jiff::{SignedDuration, Timestamp};
use operator_kit::render::{Expression, ExpressionError};
use serde_json::Value;

use super::{Target, Verdict};
use crate::{
    error::Unusable,
    metadata,
    settings::{Backup, OBJECT, TARGET},
};

/// The name by which this controller writes.
const MANAGER: &str = env!("CARGO_PKG_NAME");
/// By how much the clocks of a cluster's API servers may differ.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(10);

/// Why what was found does not count as the backup that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Its label or annotation does not name this object, try and policy.
    NotOfIt,
    /// It was there before the object was deleted.
    TooOld,
    /// Somebody else made it.
    NotOurs,
    /// It goes when the object goes.
    Owned,
}

impl Doubt {
    /// What is said of it.
    #[must_use]
    pub fn about(self, title: String) -> Unusable {
        let why = match self {
            Self::Owned => return Unusable::Owned { title },
            Self::NotOfIt => "its label and annotation do not name this object, entry and attempt",
            Self::TooOld => "it was created before the object was deleted",
            Self::NotOurs => "its managedFields do not show that backup-controller created it",
        };
        Unusable::NameTaken { title, why }
    }
}

/// Why what was found is not the backup that is looked for; none if it is.
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

/// When the deletion of an object was asked for.
fn asked_at(object: &Value) -> Option<Timestamp> {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let grace = SignedDuration::from_secs(grace.unwrap_or_default());
    metadata::time(object, "deletionTimestamp")?.checked_sub(grace).ok()
}

/// Whether an entry of the managed fields is that of a create by this controller. Whoever may create objects may give any
/// name there, so that this tells mistakes and copies, and no intent.
fn is_our_create(entry: &Value) -> bool {
    let annotation = ["fieldsV1", "f:metadata", "f:annotations", &format!("f:{BACKUP_TARGET}")];
    let owned = annotation.iter().try_fold(entry, |fields, field| fields.get(field));
    entry["manager"] == MANAGER && entry["operation"] == "Update" && owned.is_some()
}

/// How a backup fares. What is not known is still running.
#[must_use]
pub fn judge(backup: &Backup, object: &Value, target: &Value) -> Verdict {
    if metadata::is_deleted(object) {
        return Verdict::Going;
    }
    let ask = |expression: &Expression| -> Result<bool, ExpressionError> {
        expression.bool(&[(OBJECT, object), (TARGET, target)])
    };
    let failed = backup.failed.as_ref().map(ask);
    if failed == Some(Ok(true)) {
        return Verdict::Failed;
    }
    match ask(&backup.succeeded) {
        Ok(true) => Verdict::Succeeded,
        Ok(false) => Verdict::Running(failed.and_then(Result::err).map(|error| so_far(&error))),
        Err(error) => Verdict::Running(Some(so_far(&error))),
    }
}

/// What is said of a backup of which an expression has no value. A field that is missing is what a backup begins with.
fn so_far(error: &ExpressionError) -> String {
    match error {
        ExpressionError::Missing { field, key, .. } => {
            format!("the field {key}, which {field} reads, is not set yet")
        }
        error => error.to_string(),
    }
}
