use std::time::Duration;

/// How long the first status of an object may wait for something better to tell: what is ready by then costs one
/// write and not two. Until then the default of its definition says that nobody has reported yet.
const FIRST_STATUS_DELAY: Duration = Duration::from_secs(10);
/// How often a status is rewritten for numbers alone.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(20);
/// How often where the numbers have come to rest: a person, an autoscaler or a parent waits for them, and what goes
/// up and down without end still costs few writes.
const REST_DELAY: Duration = Duration::from_secs(5);

/// How soon a changed status is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Others wait for what changed.
    Urgent,
    /// Only numbers changed, and as far as can be seen they do not go on changing.
    Settled,
    /// Only numbers changed, and they go on.
    Counting,
}

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
    /// Mere numbers are gathered, so that a rollout of many replicas costs few writes.
    #[must_use]
    pub fn due_in(self, pace: Pace) -> Option<Duration> {
        let left = match (self, pace) {
            (_, Pace::Urgent) => return None,
            (Self::Written(age), Pace::Settled) => REST_DELAY.saturating_sub(age),
            (Self::Written(age), Pace::Counting) => PROGRESS_INTERVAL.saturating_sub(age),
            (Self::Unwritten(age), _) => FIRST_STATUS_DELAY.saturating_sub(age),
        };
        Some(left).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_gathered_and_what_others_wait_for_is_not() {
        let second = Duration::from_secs(1);
        assert_eq!(StatusAge::Written(second).due_in(Pace::Urgent), None);
        assert_eq!(StatusAge::Written(second).due_in(Pace::Counting), Some(19 * second));
        assert_eq!(StatusAge::Written(PROGRESS_INTERVAL).due_in(Pace::Counting), None);
    }

    #[test]
    fn numbers_that_came_to_rest_are_written_soon_but_not_again_at_once() {
        let second = Duration::from_secs(1);
        assert_eq!(StatusAge::Written(second).due_in(Pace::Settled), Some(4 * second));
        assert_eq!(StatusAge::Written(REST_DELAY).due_in(Pace::Settled), None);
    }

    #[test]
    fn a_first_status_waits_shortly_for_readiness() {
        let second = Duration::from_secs(1);
        assert_eq!(StatusAge::Unwritten(second).due_in(Pace::Urgent), None);
        assert_eq!(StatusAge::Unwritten(second).due_in(Pace::Counting), Some(9 * second));
        assert_eq!(StatusAge::Unwritten(FIRST_STATUS_DELAY).due_in(Pace::Counting), None);
    }
}
