//! What a held object says about its waiting.

use catena_api::keys::BACKUP_STATUS;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why an object that is to be deleted is still there, as its annotation says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// What goes on.
    pub state: State,
    /// The entry of the settings that it belonged to when it was deleted, whatever its labels say since.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub entry: String,
    /// The number of the try, from 1.
    pub attempt: u32,
    /// The backup: its kind, namespace and name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
    /// Since when the state is what it is, for this reason.
    pub since: Timestamp,
    /// One `PascalCase` word.
    pub reason: String,
    /// What happened, why, and what to do.
    pub message: String,
}

/// What goes on with a held object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// A backup is under way.
    BackingUp,
    /// A backup cannot be made.
    Blocked,
    /// A backup failed.
    Failed,
    /// A backup takes longer than it may.
    Overdue,
    /// It is not held any more.
    Released,
}

impl BackupStatus {
    /// What an object's annotation says; nothing if it says nothing that is understood.
    pub fn of(object: &Value) -> Option<Self> {
        let text = object.get("metadata")?.get("annotations")?.get(BACKUP_STATUS)?.as_str()?;
        serde_json::from_str(text).ok()
    }

    /// With the time since when it is so, given what was said before.
    pub fn continuing(self, before: Option<&Self>) -> Self {
        match before {
            // Another try that failed is a new failure: the pause after it begins with it.
            Some(before)
                if (before.state, &before.reason, before.attempt)
                    == (self.state, &self.reason, self.attempt) =>
            {
                Self { since: before.since, ..self }
            }
            _ => self,
        }
    }

    /// As text, for the annotation.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
