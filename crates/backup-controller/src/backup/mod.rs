//! The backups of one object: their content and their state.

mod judge;
mod render;
mod search;
mod size;
mod target;

use catena_api::reason;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::discovery::ApiResource;
use operator_watch::Failure;
use serde_json::Value;

use crate::{
    metadata,
    settings::{Backup, ProtectedKind},
};

pub use judge::{doubt, judge};
pub use render::render;
pub use search::{Failures, MAX_LOOK_UPS, Search};
pub use size::excess;
pub use target::Target;

/// The state of all backups of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Situation {
    /// There is none, and none can be created or judged.
    Unusable(Failure),
    /// It cannot be read, and that is to be reported.
    Unread,
    /// There is none; this one would be the next.
    Absent {
        /// The number of its attempt.
        attempt: u32,
        /// The object to create.
        backup: Value,
    },
    /// The last one has not failed, as far as is known.
    There {
        /// The backup.
        last: Try,
        /// Its state.
        verdict: Verdict,
    },
    /// The last one failed, or is given up because it took too long; the next one would be this.
    Failed {
        /// The backup.
        last: Try,
        /// The next object to create.
        next: Value,
        /// The number of failed attempts that this process has seen.
        seen: u32,
    },
    /// All attempts that were looked up failed, and there may be later ones.
    Unfinished {
        /// The last attempt that was looked up.
        last: Try,
    },
}

/// An existing backup.
#[derive(Clone, Debug, PartialEq)]
pub struct Try {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The object.
    pub backup: ObjectReference,
    /// When it was created, by the server's clock.
    pub created: Timestamp,
    /// Whether it exceeded its deadline, so that an entry that may release without a backup gives it up.
    pub is_given_up: bool,
    /// Whether it was gone before its outcome was seen.
    pub has_vanished: bool,
}

/// The state of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is proven.
    Succeeded,
    /// It is running, or a field that tells its state is not set yet, as the text says.
    Running(Option<String>),
    /// Its state cannot be told, for this reason: it counts as running.
    Unclear(String),
    /// It is being deleted, and so no longer proves anything.
    Going,
    /// It failed.
    Failed,
}

impl Try {
    /// An existing backup of a kind.
    #[must_use]
    pub fn new(kind: &Backup, attempt: u32, found: &Value, created: Timestamp) -> Self {
        let part = |name| Some(metadata::text(found, name).to_owned()).filter(|text| !text.is_empty());
        let [namespace, name, uid] = ["namespace", "name", "uid"].map(part);
        let ApiResource { api_version, kind, .. } = kind.resource.clone();
        let backup = ObjectReference {
            api_version: Some(api_version),
            kind: Some(kind),
            namespace,
            name,
            uid,
            ..ObjectReference::default()
        };
        Self { attempt, backup, created, is_given_up: false, has_vanished: false }
    }

    /// The kind, namespace and name of the backup.
    #[must_use]
    pub fn title(&self) -> String {
        let ObjectReference { kind, namespace, name, .. } = &self.backup;
        let [kind, namespace, name] = [kind, namespace, name].map(|part| part.as_deref().unwrap_or_default());
        title(kind, namespace, name)
    }
}

impl Verdict {
    /// Whether a backup with this state has exceeded its deadline, and the object may be released without one: then it
    /// counts as a failed try. It still proves the object's backup if it succeeds later.
    #[must_use]
    pub fn is_given_up(&self, kind: &ProtectedKind, created: Timestamp, now: Timestamp) -> bool {
        let may_end = matches!(self, Self::Running(_) | Self::Unclear(_) | Self::Going);
        let deadline = SignedDuration::try_from(kind.deadline).unwrap_or(SignedDuration::MAX);
        !kind.always_holds() && may_end && now.duration_since(created) >= deadline
    }
}

impl Situation {
    /// The last backup that exists.
    #[must_use]
    pub fn last(&self) -> Option<&Try> {
        match self {
            Self::There { last, .. } | Self::Failed { last, .. } | Self::Unfinished { last } => Some(last),
            Self::Unusable(_) | Self::Unread | Self::Absent { .. } => None,
        }
    }
}

/// Whether a backup deletes itself once it has ended, so that its outcome may never be seen.
#[must_use]
pub fn is_short_lived(backup: &Value) -> bool {
    backup["kind"] == "Job" && backup["spec"]["ttlSecondsAfterFinished"].is_number()
}

fn title(kind: &str, namespace: &str, name: &str) -> String {
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

/// The obstacle that the cluster does not serve a kind of backups.
#[must_use]
pub fn not_served(backup: &Backup) -> Failure {
    let Backup { name, resource: ApiResource { api_version, kind, .. }, .. } = backup;
    let message = format!(
        "the cluster does not serve {kind} in {api_version}; set backups.{name}.apiVersion in the controller's values to a served version, or install the CustomResourceDefinition"
    );
    Failure::stalled(reason::BACKUP_KIND_NOT_SERVED, message)
}

#[cfg(test)]
mod tests;
