//! The backups of one object: what they are made of, and how they fare.

pub mod former;
mod judge;
mod render;
mod target;

use jiff::Timestamp;
use kube::{
    core::{GroupVersion, GroupVersionKind},
    discovery::ApiResource,
};
use serde_json::Value;

use crate::{error::Unusable, metadata, settings::Backup};

pub use judge::{doubt, judge};
pub use render::render;
pub use target::Target;

/// How the backups of an object stand.
#[derive(Clone, Debug, PartialEq)]
pub enum Situation {
    /// There is none, and none can be made or judged.
    Unusable(Unusable),
    /// There is none; this one would be the next.
    Absent {
        /// What is to be created.
        backup: Value,
    },
    /// The last one did not fail, as far as is known.
    There {
        /// Which one it is.
        last: Try,
        /// How it fares.
        verdict: Verdict,
    },
    /// The last one failed; the next one would be this.
    Failed {
        /// Which one it is.
        last: Try,
        /// What is to be created next.
        next: Value,
    },
    /// All that were looked up failed, and there may be later ones.
    Unfinished {
        /// The last one that was looked up.
        last: Try,
    },
    /// There is none, but one that was begun before policies were told apart still runs: it proves nothing, and one more
    /// beside it might disturb it.
    Former {
        /// Which one it is.
        last: Try,
    },
}

/// A backup that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Try {
    /// The number of the try, from 1.
    pub attempt: u32,
    /// Its kind, namespace and name.
    pub title: String,
    /// When it was created, by the server's clock.
    pub created: Timestamp,
}

/// How a backup fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is proven.
    Succeeded,
    /// It goes on, or nothing is known of it, for the reason given if there is one.
    Running(Option<String>),
    /// It is being deleted, and so proves nothing any more.
    Going,
    /// It failed.
    Failed,
}

impl Situation {
    /// The backup that is to be created next, as far as that is known.
    #[must_use]
    pub fn next(&self) -> Option<&Value> {
        match self {
            Self::Absent { backup: next } | Self::Failed { next, .. } => Some(next),
            Self::Unusable(_) | Self::There { .. } | Self::Unfinished { .. } | Self::Former { .. } => None,
        }
    }
}

/// The kind, namespace and name of a backup.
#[must_use]
pub fn title(kind: &Backup, backup: &Value) -> String {
    let (kind, namespace, name) =
        (&kind.resource.kind, metadata::text(backup, "namespace"), metadata::text(backup, "name"));
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

/// The kind of a backup in the version that the backup is written in.
#[must_use]
pub fn written_as(kind: &Backup, backup: &Value) -> ApiResource {
    let wanted = &kind.resource;
    let version = backup["apiVersion"].as_str().and_then(|version| version.parse().ok());
    let Some(GroupVersion { version, .. }) = version else { return wanted.clone() };
    let written = GroupVersionKind { group: wanted.group.clone(), version, kind: wanted.kind.clone() };
    ApiResource::from_gvk_with_plural(&written, &wanted.plural)
}

#[cfg(test)]
mod tests;
