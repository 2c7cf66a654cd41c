//! How often somebody's change of the child was put back.

use std::time::Duration;

/// How long a change is left before it is put back once more: where two want the same field, this is how often it
/// changes.
const PACE: Duration = Duration::from_secs(5);
/// So many times in a row is no slip, but a contest.
const OFTEN: u32 = 3;
/// A contest is over when nothing had to be put back for this long.
pub const QUIET: Duration = Duration::from_secs(60);

/// What of a child somebody else may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A field that the template renders.
    Rendering,
    /// The replicas.
    Replicas,
    /// A key in a map that is the template's as a whole.
    Additions,
}

/// How often a part was put back lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The field.
    pub field: String,
    /// How long ago.
    pub since: Duration,
    /// So many times, with no quiet between.
    pub times: u32,
}

impl Undone {
    /// How long another change of the part is still left.
    #[must_use]
    pub fn left_for(&self) -> Option<Duration> {
        PACE.checked_sub(self.since).filter(|left| !left.is_zero())
    }

    /// Whether somebody goes on changing the part.
    #[must_use]
    pub fn is_contest(&self) -> bool {
        self.times >= OFTEN && self.since < QUIET
    }
}
