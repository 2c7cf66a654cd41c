//! Backups from a version whose names did not distinguish policies.

use catena_api::keys::{BACKUP_OF, BACKUP_TARGET};
use jiff::{SignedDuration, Timestamp};
use operator_kit::render::{Templates, short_digest};
use serde_json::Value;

use super::{Target, Try, Verdict, judge::judge, render::render_as, title};
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
    let deadline = SignedDuration::try_from(kind.deadline).unwrap_or(SignedDuration::MAX);
    let is_late = now.duration_since(created) >= deadline;
    let runs = matches!(judge(&kind.backup, found, target), Verdict::Running(_) | Verdict::Going);
    (runs && !is_late).then(|| Try {
        attempt,
        title: title(&kind.backup, found),
        created,
        is_given_up: false,
    })
}
