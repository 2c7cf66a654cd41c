use std::{fmt, time::Duration};

use super::{NextRetry, clip::clip};

/// The way out of a failure. Every failure is retried with exponential backoff, because a fix is not always visible,
/// but the category is reported. Bounded, so that it can be a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// The next attempt may succeed.
    Transient,
    /// No attempt can succeed until somebody changes something: the object is stalled.
    WaitsForChange,
}

impl Category {
    /// The category as a metric label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::WaitsForChange => "waits_for_change",
        }
    }
}

/// An error that a controller can report on the object it concerns.
pub trait Reported: std::error::Error + Send + Sync + 'static {
    /// The way out of it: that of the wrapped error, or the next attempt.
    fn category(&self) -> Category {
        self.wrapped().map_or(Category::Transient, Reported::category)
    }
    /// One `PascalCase` word for a condition or an Event.
    fn reason(&self) -> &'static str;
    /// The wrapped error, if there is one: it knows the way out, whether it is expected and when to retry.
    fn wrapped(&self) -> Option<&dyn Reported> {
        None
    }
    /// Whether it is a normal event that passes by itself and need not be reported.
    fn is_expected(&self) -> bool {
        self.wrapped().is_some_and(Reported::is_expected)
    }
    /// The delay that the server asked for, if it did.
    fn retry_after(&self) -> Option<Duration> {
        self.wrapped().and_then(Reported::retry_after)
    }
    /// The only step that it holds up, if it comes from observing, which otherwise holds up everything.
    fn step(&self) -> Option<&'static str> {
        None
    }
    /// The failed parts: the step as a whole, or single items of its batch, which then back off alone.
    fn parts(&self) -> Vec<Part>
    where
        Self: Sized,
    {
        vec![Part::whole(self)]
    }
    /// Whether a part of the step succeeded nevertheless.
    fn has_progressed(&self) -> bool {
        false
    }
}

/// A failed part of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The item, by its name in `decide`; `None` for the step as a whole.
    pub item: Option<String>,
    /// Why.
    pub failure: Failure,
    /// The delay before the next try, if the server asked for one, or a limit does.
    pub retry_after: Option<Duration>,
}

impl Part {
    /// The failure of a step as a whole.
    pub fn whole(error: &impl Reported) -> Self {
        Self { retry_after: error.retry_after(), ..Failure::of(error).into() }
    }

    /// The failure of a step for one item.
    pub fn item(item: String, error: &impl Reported) -> Self {
        Self { item: Some(item), ..Self::whole(error) }
    }
}

impl From<Failure> for Part {
    fn from(failure: Failure) -> Self {
        Self { item: None, failure, retry_after: None }
    }
}

/// The last error of an object, kept until an attempt succeeds, for its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The way out of it.
    pub category: Category,
    /// One `PascalCase` word.
    pub reason: &'static str,
    /// The message to users: what happened, why, and what to do.
    pub message: String,
    /// Whether it passes by itself and need not be reported.
    pub is_expected: bool,
    /// The next retry; `None` if there has been no try.
    pub next_retry: Option<NextRetry>,
}

/// Maximum length of the message of a failure, in bytes.
const LONGEST_MESSAGE: usize = 4096;

impl Failure {
    /// Converts an error, with its whole chain of causes in the message.
    pub fn of(error: &impl Reported) -> Self {
        Self {
            category: error.category(),
            reason: error.reason(),
            // It may repeat a text of the object, and is written to several places of its status.
            message: clip(&with_causes(error), LONGEST_MESSAGE),
            is_expected: error.is_expected(),
            next_retry: None,
        }
    }

    /// The message with the time of the next retry, for a condition.
    #[must_use]
    pub fn with_next_retry(&self) -> String {
        self.next_retry.map_or_else(|| self.message.clone(), |next| format!("{}; {next}", self.message))
    }

    /// The failure of a pass that took too long. Without the Lease nothing is written.
    pub(crate) fn timed_out(patience: Duration, lease_problem: Option<String>) -> Self {
        let why = lease_problem.unwrap_or_else(|| "the API server does not answer".to_owned());
        let message = format!("reconciling took longer than {} s: {why}; retrying", patience.as_secs());
        Self {
            category: Category::Transient,
            reason: "TimedOut",
            message,
            is_expected: false,
            next_retry: None,
        }
    }
}

/// An error's text with its whole chain of causes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some libraries repeat the cause in their own text.
        if !message.contains(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        cause = error.source();
    }
    message
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}
