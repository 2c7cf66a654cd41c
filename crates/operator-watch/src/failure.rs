use std::{fmt, time::Duration};

use jiff::{Timestamp, Unit};

/// Maximum length of the message of a failure, in bytes.
const LONGEST_MESSAGE: usize = 4096;

/// Delay up to which the time of a retry is not reported: each report of a time costs a write of the status.
const SHORT_DELAY: Duration = Duration::from_secs(75);

/// A failure, as it is reported on the object that it concerns. Every failure is retried with exponential backoff,
/// because a fix is not always visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whether no attempt can succeed until somebody changes something: the object is stalled.
    pub is_stalled: bool,
    /// One `PascalCase` word for a condition or an Event.
    pub reason: &'static str,
    /// The message to users: what happened, why, and what to do.
    pub message: String,
    /// Whether it is a normal event that passes by itself and need not be reported.
    pub is_expected: bool,
    /// The delay before the next try, if the server asked for one, or a limit does.
    pub retry_after: Option<Duration>,
    /// The item of a batch that alone is held up, by its name in `decide`; `None` for the step as a whole.
    pub item: Option<String>,
    /// The next retry; `None` if there has been no try.
    pub next_retry: Option<NextRetry>,
}

impl Failure {
    /// A failure that the next attempt may not have.
    #[must_use]
    pub fn transient(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_stalled: false,
            reason,
            // It may repeat a text of the object, and is written to several places of its status.
            message: Self::clip(&message.into(), LONGEST_MESSAGE),
            is_expected: false,
            retry_after: None,
            item: None,
            next_retry: None,
        }
    }

    /// A failure that waits for a change by somebody.
    #[must_use]
    pub fn stalled(reason: &'static str, message: impl Into<String>) -> Self {
        Self { is_stalled: true, ..Self::transient(reason, message) }
    }

    /// The beginning of a text, to at most so many bytes.
    #[must_use]
    pub fn clip(text: &str, longest: usize) -> String {
        let end = (0..=longest.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text[..end].to_owned()
    }

    /// The message with the time of the next retry, for a condition.
    #[must_use]
    pub fn with_next_retry(&self) -> String {
        self.next_retry.map_or_else(|| self.message.clone(), |next| format!("{}; {next}", self.message))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

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

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(Failure::clip("äöü", 3), "ä");
        assert_eq!(Failure::clip("abc", 10), "abc");
    }
}
