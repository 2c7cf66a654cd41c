use std::time::Duration;

/// Maximum delay of the first status of an object: an object that is ready by then costs one write instead of two.
/// Until then, the default of its definition shows that no controller has reported yet.
const FIRST_STATUS_DELAY: Duration = Duration::from_secs(30);
/// Minimum time between writes of a status in which only numbers change.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(20);
/// The same, once the numbers are stable: people, autoscalers and parents wait for them, and constantly fluctuating
/// numbers still cost few writes.
const REST_DELAY: Duration = Duration::from_secs(5);

/// The urgency of a changed status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Others wait for the change.
    Urgent,
    /// Only numbers changed, and they appear stable now.
    Settled,
    /// Only numbers changed, and they keep changing.
    Counting,
}

/// The age of the status of an object, as far as this process knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusAge {
    /// The time since this process wrote it.
    Written(Duration),
    /// This process has not written it yet; the time since it first saw the object.
    Unwritten(Duration),
}

impl StatusAge {
    /// The delay before a changed status is written; `None` means now.
    ///
    /// Changes of numbers are batched, so that a rollout of many replicas costs few writes.
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
        assert_eq!(StatusAge::Unwritten(second).due_in(Pace::Counting), Some(29 * second));
        assert_eq!(StatusAge::Unwritten(FIRST_STATUS_DELAY).due_in(Pace::Counting), None);
    }
}
