//! The input of a decision about a command, as plain data.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use kube::api::ObjectMeta;
use operator_kit::{
    run::Attempt,
    watch::{ServedKind, Source, Watched, WatchedResource},
};

use crate::{command::CommandRow, verdict::Verdict};

/// The input of a decision about a command.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The command.
    pub command: Arc<Watched<CommandRow>>,
    /// The steps that this pass may take.
    pub attempt: Attempt,
    /// The time of the observation.
    pub now: Timestamp,
    /// The time since which this process leads: earlier reports are unknown.
    pub leads_since: Timestamp,
    /// Its target, if it had to be looked up.
    pub target: Option<Target>,
    /// Whether its label was found to name the target, because anybody can set a label.
    pub is_label_checked: bool,
    /// Whether the condition `Bound` may be written; otherwise Events are published. `None` if that is not known.
    pub can_report: Option<bool>,
    /// The last report on it by an Event.
    pub told: Option<Told>,
}

/// A target, looked up live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The cluster does not serve its kind in any version.
    NotServed,
    /// Its kind is served.
    Served {
        /// The served kind.
        kind: ServedKind,
        /// The object with that name, if there is one where the command may have its target.
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

/// Shortest time between two Events on a command with the same reason and different messages.
pub const MIN_REWORDING_INTERVAL: Duration = Duration::from_secs(10);

/// A report by an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The reason.
    pub reason: &'static str,
    /// A hash of the message.
    message: u64,
    /// When.
    pub at: Timestamp,
    /// The time since which the message of this reason counts as changing.
    since: Timestamp,
}

impl Told {
    /// The report of a verdict, after an earlier report on the same command. The pause before the next wording is at most twice
    /// as long as the last one, so that a message that stood still for long is corrected soon.
    #[must_use]
    pub fn new(verdict: &Verdict, at: Timestamp, before: Option<Self>) -> Self {
        let message = hash(&verdict.message);
        let reworded = before.filter(|before| before.reason == verdict.reason && before.message != message);
        let since = reworded.map_or(at, |before| {
            let at_most = (before.changed_for() * 2).max(MIN_REWORDING_INTERVAL);
            before.since.max(at.checked_sub(at_most).unwrap_or(at))
        });
        Self { reason: verdict.reason, message, at, since }
    }

    /// Whether it reports this verdict, in these words.
    #[must_use]
    pub fn reports(&self, verdict: &Verdict) -> bool {
        self.reason == verdict.reason && self.message == hash(&verdict.message)
    }

    /// The time for which the message had been changing.
    #[must_use]
    pub fn changed_for(&self) -> Duration {
        Duration::try_from(self.at.duration_since(self.since)).unwrap_or_default()
    }
}

fn hash(message: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    hasher.finish()
}

impl Observed {
    /// An observation of a command that no process watches, for tests.
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
            leads_since: now,
            target,
            is_label_checked: false,
            can_report: Some(false),
            told: None,
        }
    }

    /// The age of the command.
    #[must_use]
    pub fn age(&self) -> Duration {
        let created = self.command.metadata.creation_timestamp.as_ref();
        created.map_or(Duration::ZERO, |created| {
            Duration::try_from(self.now.duration_since(created.0)).unwrap_or_default()
        })
    }
}

impl Target {
    /// The kind and the object, if both exist.
    #[must_use]
    pub fn found(&self) -> Option<(&ServedKind, &TargetObject)> {
        match self {
            Self::Served { kind, object: Some(object) } => Some((kind, object)),
            _ => None,
        }
    }
}
