//! What a decision about a protected object is made from, as plain data.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::core::{Selector, SelectorExt};
use operator_kit::{
    run::Attempt,
    watch::{TrimmedObject, Watched, Watermark},
};

use crate::{
    annotation::BackupStatus, backup::Situation, error::Missing, force_release::ForceRelease,
    settings::ProtectedKind,
};

/// What is kept of an object of a protected kind.
#[derive(Clone, Debug)]
pub struct Row {
    /// The entries of the settings whose selector selects it.
    pub selected_by: Vec<Arc<str>>,
    /// The fingerprint of those entries: other ones are not judged by what these select.
    pub judged_by: Arc<str>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

/// What a decision about an object is made from.
#[derive(Debug)]
pub struct Observed {
    /// The object, as its watch shows it.
    pub target: Arc<Watched<Row>>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// The entry of the settings that it belongs to; none while they are changing.
    pub kind: Option<Arc<ProtectedKind>>,
    /// Whether it is to be protected.
    pub selection: Selection,
    /// How far the watch of its backups is.
    pub backups: Watermark,
    /// What is known live of an object that is being deleted and has our finalizer.
    pub held: Option<Held>,
}

/// Whether an object is to be protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// It is.
    Selected,
    /// It is not.
    NotSelected,
}

/// An object that is being deleted and has our finalizer, read live.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// Whether it has annotations.
    pub is_annotated: bool,
    /// When it was deleted, by the server's clock.
    pub since: Timestamp,
    /// When it was read, by the server's clock.
    pub now: Timestamp,
    /// What it says of its waiting.
    pub status: Option<BackupStatus>,
    /// Whether somebody lets it go.
    pub force_release: ForceRelease,
    /// How often in a row the server refused to create a backup.
    pub refusals: u32,
    /// How its backups stand; not asked when somebody lets it go.
    pub situation: Option<Situation>,
    /// What the pass before found missing when it created the very backup that would be the next.
    pub missing: Option<Missing>,
}

impl Row {
    /// What is kept of an object.
    #[must_use]
    pub fn of(object: TrimmedObject, selectors: &[(Arc<str>, Selector)], judged_by: &Arc<str>) -> Self {
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
    /// For how long it has been held.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::try_from(self.now.duration_since(self.since)).unwrap_or_default()
    }

    /// What is left of a span that began at a time.
    #[must_use]
    pub fn left(&self, since: Timestamp, span: Duration) -> Duration {
        let passed = Duration::try_from(self.now.duration_since(since)).unwrap_or_default();
        span.saturating_sub(passed)
    }
}
