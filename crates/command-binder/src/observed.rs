//! What a decision about a command is made from, as plain data.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::api::ObjectMeta;
use operator_kit::{
    run::Attempt,
    watch::{ServedKind, Source, Watched, WatchedResource},
};

use crate::command::CommandRow;

/// What a decision about a command is made from.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The command.
    pub command: Arc<Watched<CommandRow>>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// When it was observed.
    pub now: Timestamp,
    /// When this process started: what was told before is not known.
    pub started: Timestamp,
    /// Its target, where one had to be looked up.
    pub target: Option<Target>,
    /// Whether its label was found to name the target: anybody can write a label.
    pub is_label_checked: bool,
    /// Whether the condition `Bound` may be written; else Events tell.
    pub can_report: bool,
    /// What was told last of it by an Event.
    pub told: Option<Told>,
}

/// A target, looked up live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The cluster does not serve its kind in any version.
    NotServed,
    /// Its kind is there.
    Served {
        /// The kind as the cluster serves it.
        kind: ServedKind,
        /// The object of that name, if there is one where the command may have its target.
        object: Option<TargetObject>,
    },
}

/// An object that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetObject {
    /// Its uid.
    pub uid: Box<str>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

/// What was told by an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The reason.
    pub reason: &'static str,
    /// When.
    pub at: Timestamp,
}

impl Observed {
    /// What somebody observes who only wants to know what is to be said of a command.
    #[must_use]
    pub fn by_onlooker(
        metadata: ObjectMeta,
        row: CommandRow,
        target: Option<Target>,
        now: Timestamp,
    ) -> Self {
        let watched = WatchedResource::unwatched(row.kind.resource.clone());
        let source = Arc::new(Source { id: row.kind.id.clone(), watched });
        Self {
            command: Arc::new(Watched { metadata, source, row }),
            attempt: Attempt::Allowed,
            now,
            started: now,
            target,
            is_label_checked: false,
            can_report: false,
            told: None,
        }
    }

    /// How long the command has been there.
    #[must_use]
    pub fn age(&self) -> Duration {
        let created = self.command.metadata.creation_timestamp.as_ref();
        created.map_or(Duration::ZERO, |created| {
            Duration::try_from(self.now.duration_since(created.0)).unwrap_or_default()
        })
    }
}

impl Target {
    /// The kind and the object, if both are there.
    #[must_use]
    pub fn found(&self) -> Option<(&ServedKind, &TargetObject)> {
        match self {
            Self::Served { kind, object: Some(object) } => Some((kind, object)),
            _ => None,
        }
    }
}
