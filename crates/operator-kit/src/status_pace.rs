use std::time::Duration;

/// How long the first status of an object may wait for something better to tell: what is ready by then costs one
/// write and not two. Until then the default of its definition says that nobody has reported yet.
const FIRST: Duration = Duration::from_secs(10);
/// How often a status is rewritten for numbers alone.
const PROGRESS: Duration = Duration::from_secs(20);

/// How long the status of an object has been as it is, as far as this process knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusAge {
    /// This process wrote it so long ago.
    Written(Duration),
    /// This process did not write it yet, and has known the object for so long.
    Unwritten(Duration),
}

impl StatusAge {
    /// When a changed status is to be written: `None` is now.
    ///
    /// What others wait for (`urgent`) goes out at once. Mere numbers are gathered, so that a rollout of many
    /// replicas costs few writes.
    #[must_use]
    pub fn due_in(self, urgent: bool) -> Option<Duration> {
        let left = match self {
            Self::Written(age) => PROGRESS.saturating_sub(age),
            Self::Unwritten(age) => FIRST.saturating_sub(age),
        };
        Some(left).filter(|left| !urgent && !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_gathered_and_what_others_wait_for_is_not() {
        let second = Duration::from_secs(1);
        assert_eq!(StatusAge::Written(second).due_in(true), None);
        assert_eq!(StatusAge::Written(second).due_in(false), Some(19 * second));
        assert_eq!(StatusAge::Written(PROGRESS).due_in(false), None);
    }

    #[test]
    fn a_first_status_waits_shortly_for_readiness() {
        let second = Duration::from_secs(1);
        assert_eq!(StatusAge::Unwritten(second).due_in(true), None);
        assert_eq!(StatusAge::Unwritten(second).due_in(false), Some(9 * second));
        assert_eq!(StatusAge::Unwritten(FIRST).due_in(false), None);
    }
}
