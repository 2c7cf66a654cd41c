//! Backups that were begun by a version whose names did not tell policies apart.

use catena_api::keys::{BACKUP_OF, BACKUP_TARGET};
use jiff::SignedDuration;
use operator_kit::{render::short_digest, watch::ReadError};

use super::{Survey, Target, Try, Verdict, judge::judge, render::render_as, survey::title};
use crate::metadata;

impl Survey<'_> {
    /// Such a backup of this try, as long as it runs and has time to.
    pub(super) async fn former(&self, attempt: Option<u32>) -> Result<Option<Try>, ReadError> {
        let Some(attempt) = attempt else { return Ok(None) };
        let uid = metadata::text(self.target, "uid");
        let suffix = short_digest(&[uid, &attempt.to_string()]);
        let Ok(mut backup) = render_as(self.templates, self.kind, self.target, attempt, &suffix) else {
            return Ok(None);
        };
        let Some(found) = self.look_up(&mut backup).await? else { return Ok(None) };
        let about = metadata::entry(&found, "annotations", BACKUP_TARGET);
        let about = about.and_then(|text| serde_json::from_str::<Target>(text).ok());
        let is_it = metadata::entry(&found, "labels", BACKUP_OF) == Some(uid)
            && about.is_some_and(|about| about.policy.is_empty() && about.attempt == attempt);
        let Some(created) = metadata::time(&found, "creationTimestamp").filter(|_| is_it) else {
            return Ok(None);
        };
        let deadline = SignedDuration::try_from(self.kind.deadline).unwrap_or(SignedDuration::MAX);
        let is_late = self.now.duration_since(created) >= deadline;
        let runs =
            matches!(judge(&self.kind.backup, &found, self.target), Verdict::Running(_) | Verdict::Going);
        Ok((runs && !is_late).then(|| Try { attempt, title: title(&self.kind.backup, &backup), created }))
    }
}
