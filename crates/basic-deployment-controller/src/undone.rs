//! Recently undone changes of the child: their pace, and the number that makes a contest.

use std::time::Duration;

/// Minimum time before another change is undone: if two writers fight over a field, it changes at this pace.
const UNDO_INTERVAL: Duration = Duration::from_secs(5);
/// Number of undone changes in a row that make a contest.
const CONTEST_THRESHOLD: u32 = 3;
/// Time without an undone change after which a contest is over.
pub const CONTEST_END: Duration = Duration::from_secs(60);

/// A part of a child that somebody else may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A field that the template renders.
    Rendering,
    /// The replicas.
    Replicas,
    /// A key in a map that belongs to the template as a whole.
    Additions,
}

/// The recently undone changes of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The field, and the kind that has it.
    pub field: String,
    /// The time since the last one.
    pub since: Duration,
    /// Their number, without a quiet time in between.
    pub times: u32,
}

impl Undone {
    /// The time until another change of the part is undone.
    #[must_use]
    pub fn left_for(&self) -> Option<Duration> {
        UNDO_INTERVAL.checked_sub(self.since).filter(|left| !left.is_zero())
    }

    /// Whether somebody keeps changing the part.
    #[must_use]
    pub fn is_contest(&self) -> bool {
        self.times >= CONTEST_THRESHOLD && self.since < CONTEST_END
    }
}
