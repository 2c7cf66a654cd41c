//! The input of a decision about a protected object, as plain data.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::{Selector, SelectorExt};
use operator_kit::run::Backoffs;
use operator_watch::{DynamicRow, Failure, PrunedObject, SeenVersion};

use crate::{
    annotation::BackupStatus, backup::Situation, force_release::ForceRelease, settings::ProtectedKind,
};

/// The row of an object of a protected kind.
#[derive(Clone, Debug)]
pub struct Row {
    /// The entries of the settings whose selector selects it.
    pub selected_by: Vec<Arc<str>>,
    /// The fingerprint of those entries: their selection does not apply to other ones.
    pub judged_by: Arc<str>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

/// The input of a decision about an object.
#[derive(Debug)]
pub struct Observed {
    /// The object, from its watch.
    pub target: Arc<DynamicRow<Row>>,
    /// The steps that this pass may take.
    pub backoffs: Backoffs,
    /// The entry of the settings that it belongs to; `None` while they are changing.
    pub kind: Option<Arc<ProtectedKind>>,
    /// Whether it is to be protected.
    pub is_selected: bool,
    /// The reason why a living object cannot be backed up; known once, after it got our finalizer, and only of a large one.
    pub excess: Option<Failure>,
    /// The highest version that the watch of its backups has delivered.
    pub backups: SeenVersion,
    /// The live state of an object that is being deleted and has our finalizer.
    pub held: Option<Held>,
}

/// An object that is being deleted and has our finalizer, from a live read.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// Whether it has annotations.
    pub is_annotated: bool,
    /// The time of its deletion, by the server's clock.
    pub since: Timestamp,
    /// The time of the read, by the server's clock.
    pub now: Timestamp,
    /// The status that was told last: by this process, or in its annotation.
    pub status: Option<BackupStatus>,
    /// The time after which it is told again, because its annotation does not show it.
    pub tell_again: Option<Duration>,
    /// The request to release it without a backup.
    pub force_release: ForceRelease,
    /// The number of refusals in a row to create a backup.
    pub refusals: u32,
    /// The state of its backups; not read if somebody releases it.
    pub situation: Option<Situation>,
}

impl Row {
    /// Prunes an object.
    #[must_use]
    pub fn of(object: PrunedObject, selectors: &[(Arc<str>, Selector)], judged_by: &Arc<str>) -> Self {
        let labels = object.metadata.labels.unwrap_or_default();
        let selecting = selectors.iter().filter(|(_, selector)| selector.matches(&labels));
        Self {
            selected_by: selecting.map(|(id, _)| id.clone()).collect(),
            judged_by: judged_by.clone(),
            finalizers: object.metadata.finalizers.unwrap_or_default(),
        }
    }
}

impl Held {
    /// The time for which it has been held.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::try_from(self.now.duration_since(self.since)).unwrap_or_default()
    }

    /// Whether a backup was found before.
    #[must_use]
    pub fn had_a_backup(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.backup.is_some())
    }

    /// When the state that is told began.
    #[must_use]
    pub fn told_since(&self) -> Timestamp {
        self.status.as_ref().map_or(self.since, |status| status.since)
    }

    /// The number of the last attempt by a policy that was recorded before its creation; 0 for none.
    #[must_use]
    pub fn begun_by(&self, policy: &str) -> u32 {
        self.status.as_ref().map_or(0, |status| status.begun_by(policy))
    }

    /// Its last backup that exists, as far as is known.
    #[must_use]
    pub fn last_backup(&self) -> Option<ObjectReference> {
        self.situation.as_ref()?.last().map(|last| last.backup.clone())
    }

    /// The rest of a span that began at a time.
    #[must_use]
    pub fn left(&self, since: Timestamp, span: Duration) -> Duration {
        let passed = Duration::try_from(self.now.duration_since(since)).unwrap_or_default();
        span.saturating_sub(passed)
    }
}
