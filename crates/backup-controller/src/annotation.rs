//! The annotation in which a held object reports the reason for its waiting.

use catena_api::keys::BACKUP_STATUS;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{metadata, settings::LAST_ATTEMPT};

/// The reason why a deleted object still exists, in its annotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// The uid of the object. A copy of the object has the annotation, but another uid.
    pub uid: String,
    /// The state.
    pub state: State,
    /// The entry of the settings that it belonged to when it was deleted, independent of later labels.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub entry: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The backup: its kind, namespace and name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
    /// The attempts that failed, even if their objects are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<LastAttempt>,
    /// The attempts that were recorded before their creation, because their backups delete themselves: a missing one may have
    /// ended unseen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<LastAttempt>,
    /// The begin of the state, for this reason, by the server's clock.
    pub since: Timestamp,
    /// One `PascalCase` word.
    pub reason: String,
    /// What happened, why, and what to do.
    pub message: String,
}

/// The last attempt of some by one policy: another policy begins with its own first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAttempt {
    /// The policy, as [`ProtectedKind::policy`](crate::settings::ProtectedKind::policy).
    pub policy: String,
    /// Its number.
    pub last: u32,
}

/// The state of a held object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// A backup is running.
    BackingUp,
    /// A backup cannot be created.
    Blocked,
    /// A backup failed.
    Failed,
    /// A backup takes longer than its deadline.
    Overdue,
    /// It is no longer held.
    Released,
}

impl BackupStatus {
    /// The status in an object's annotation; `None` if the annotation belongs to another object, or cannot be parsed.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
        let text = metadata::entry(object, "annotations", BACKUP_STATUS)?;
        let status: Self = serde_json::from_str(text).ok()?;
        let is_valid = (1..=LAST_ATTEMPT).contains(&status.attempt);
        (is_valid && status.uid == metadata::text(object, "uid")).then_some(status)
    }

    /// The number of the last attempt by a policy that failed; 0 for none.
    #[must_use]
    pub fn failed_by(&self, policy: &str) -> u32 {
        last_by(policy, self.failed.as_ref())
    }

    /// The number of the last attempt by a policy that was recorded before it was created; 0 for none.
    #[must_use]
    pub fn begun_by(&self, policy: &str) -> u32 {
        last_by(policy, self.begun.as_ref())
    }

    /// The status with its begin, which stays if the former status was the same.
    #[must_use]
    pub fn continuing(self, before: Option<&Self>) -> Self {
        match before {
            // Another failed attempt is a new failure, with which a new pause begins; another reason of the same is not.
            Some(before)
                if (before.state, before.attempt) == (self.state, self.attempt)
                    && (before.reason == self.reason || self.state == State::Failed) =>
            {
                Self { since: before.since, ..self }
            }
            _ => self,
        }
    }

    /// As text, for the annotation.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn last_by(policy: &str, attempts: Option<&LastAttempt>) -> u32 {
    attempts.filter(|attempts| attempts.policy == policy).map_or(0, |attempts| attempts.last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str, status: &Value) -> Value {
        json!({"metadata": {"uid": uid, "annotations": {BACKUP_STATUS: status.to_string()}}})
    }

    fn status(uid: Option<&str>, attempt: u32) -> Value {
        let mut status = json!({
            "state": "Failed", "entry": "e", "attempt": attempt, "since": "2026-01-01T00:00:00Z", "reason": "BackupFailed",
            "message": "",
        });
        if let Some(uid) = uid {
            status["uid"] = uid.into();
        }
        status
    }

    #[test]
    fn a_failure_for_another_reason_does_not_begin_its_pause_anew_and_another_attempt_does() {
        let former = BackupStatus::of(&object("u", &status(Some("u"), 3))).unwrap();
        let later = BackupStatus { reason: "BackupOverdue".into(), since: Timestamp::MAX, ..former.clone() };
        assert_eq!(later.clone().continuing(Some(&former)).since, former.since);
        let next = BackupStatus { attempt: 4, ..later };
        assert_eq!(next.continuing(Some(&former)).since, Timestamp::MAX);
    }

    #[test]
    fn what_another_object_said_is_not_believed() {
        assert_eq!(BackupStatus::of(&object("u", &status(Some("u"), 3))).unwrap().attempt, 3);
        assert_eq!(BackupStatus::of(&object("u", &status(Some("v"), 3))), None);
        assert_eq!(BackupStatus::of(&object("u", &status(None, 3))), None);
    }

    #[test]
    fn a_try_that_never_was_is_not_believed() {
        for attempt in [0, LAST_ATTEMPT + 1, u32::MAX] {
            assert_eq!(BackupStatus::of(&object("u", &status(Some("u"), attempt))), None, "{attempt}");
        }
    }
}
