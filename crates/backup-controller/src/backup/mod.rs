//! The backups of one object: what they are made of, and how they fare.

mod former;
mod judge;
mod render;
mod survey;
mod target;
mod version;

use jiff::Timestamp;
use serde_json::Value;

use crate::error::Unusable;

pub use survey::Survey;
pub use target::Target;
pub use version::{instead, written_as};

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

#[cfg(test)]
mod tests;
