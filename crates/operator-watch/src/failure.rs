use std::{fmt, time::Duration};

use super::NextRetry;

/// Maximum length of the message of a failure, in bytes.
const LONGEST_MESSAGE: usize = 4096;

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
