use std::{fmt, time::Duration};

use jiff::{Timestamp, Unit};

/// Delay up to which the time of a retry is not reported: each report of a time costs a write of the status.
const SHORT_DELAY: Duration = Duration::from_secs(75);

/// The next retry of a step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRetry {
    /// It comes before anybody could wait for it. Such a report stays the same from retry to retry.
    Soon,
    /// It comes at this time, or before.
    At(Timestamp),
}

impl NextRetry {
    /// A retry after a delay that begins now. The time is rounded up to a second.
    #[must_use]
    pub fn after(delay: Duration, now: Timestamp) -> Self {
        if delay <= SHORT_DELAY {
            return Self::Soon;
        }
        // The clock would have to be at the end of all times.
        let at = now.checked_add(delay + Duration::from_secs(1)).unwrap_or(Timestamp::MAX);
        Self::At(at.round(Unit::Second).unwrap_or(at))
    }

    /// Its time, if that is reported.
    #[must_use]
    pub fn at(self) -> Option<Timestamp> {
        match self {
            Self::Soon => None,
            Self::At(time) => Some(time),
        }
    }
}

impl fmt::Display for NextRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Soon => write!(f, "it is retried within {} s", SHORT_DELAY.as_secs()),
            Self::At(time) => write!(f, "it is retried at {time} at the latest"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_retry_that_people_wait_for_is_reported_with_its_time() {
        let now = Timestamp::from_millisecond(1_000_400).unwrap();
        let after = |seconds| NextRetry::after(Duration::from_secs(seconds), now);
        assert_eq!((after(5), after(72)), (NextRetry::Soon, NextRetry::Soon));
        let late = after(160);
        assert_eq!(late.at(), Some(Timestamp::from_second(1_161).unwrap()));
        assert_eq!(late.to_string(), "it is retried at 1970-01-01T00:19:21Z at the latest");
    }
}
