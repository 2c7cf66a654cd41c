//! Backups from a version whose names did not distinguish policies.

use catena_api::keys::{BACKUP_OF, BACKUP_TARGET};
use jiff::Timestamp;
use operator_kit::render::{Templates, short_digest};
use serde_json::Value;

use super::{Target, Try, is_late, judge::judge, render::render_as};
use crate::{error::Unusable, metadata, settings::ProtectedKind};

/// Such a backup of an object.
pub fn render(
    templates: &Templates,
    kind: &ProtectedKind,
    target: &Value,
    attempt: u32,
) -> Result<Value, Unusable> {
    let suffix = short_digest(&[metadata::text(target, "uid"), &attempt.to_string()]);
    render_as(templates, kind, target, attempt, &suffix)
}

/// Such a backup, if it is found, is running, and has not exceeded its deadline.
#[must_use]
pub fn judge_as_former(
    kind: &ProtectedKind,
    target: &Value,
    attempt: u32,
    found: &Value,
    now: Timestamp,
) -> Option<Try> {
    let about = metadata::entry(found, "annotations", BACKUP_TARGET);
    let about = about.and_then(|text| serde_json::from_str::<Target>(text).ok());
    let is_it = metadata::entry(found, "labels", BACKUP_OF) == Some(metadata::text(target, "uid"))
        && about.is_some_and(|about| about.policy.is_empty() && about.attempt == attempt);
    let created = metadata::time(found, "creationTimestamp").filter(|_| is_it)?;
    let counts = judge(&kind.backup, found, target).is_open() && !is_late(kind, created, now);
    counts.then(|| Try::new(&kind.backup, attempt, found, created))
}
