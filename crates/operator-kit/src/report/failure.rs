use std::{fmt, time::Duration};

/// What can end a failure. It is retried with exponential backoff in any case, because what was mended is not
/// always seen; but people are told which. Bounded, so that it can be a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// It may work next time.
    Transient,
    /// It cannot work until somebody changes something: the object is stalled.
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
    /// What can end it.
    fn category(&self) -> Category;
    /// One `PascalCase` word for a condition or an Event.
    fn reason(&self) -> &'static str;
    /// The error that it wraps, if that one knows whether it is expected and when to retry.
    fn wrapped(&self) -> Option<&dyn Reported> {
        None
    }
    /// Whether it belongs to the normal course of things and passes by itself, so that nobody need be told.
    fn is_expected(&self) -> bool {
        self.wrapped().is_some_and(Reported::is_expected)
    }
    /// When the server asked to be tried again, if it did.
    fn retry_after(&self) -> Option<Duration> {
        self.wrapped().and_then(Reported::retry_after)
    }
    /// What failed: the step as a whole, or single items of its batch, which alone are held up then.
    fn parts(&self) -> Vec<Part>
    where
        Self: Sized,
    {
        vec![Part::whole(self)]
    }
    /// Whether some of the step was done nevertheless.
    fn has_progressed(&self) -> bool {
        false
    }
}

/// What failed of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The item, by the name that `decide` knows it by; `None` for the step as a whole.
    pub item: Option<String>,
    /// Why.
    pub failure: Failure,
    /// When the server asked to be tried again, if it did.
    pub retry_after: Option<Duration>,
}

impl Part {
    /// That a step failed as a whole.
    pub fn whole(error: &impl Reported) -> Self {
        Self { item: None, failure: Failure::of(error), retry_after: error.retry_after() }
    }

    /// That a step failed for one item.
    pub fn item(item: String, error: &impl Reported) -> Self {
        Self { item: Some(item), ..Self::whole(error) }
    }
}

/// The last error of an object, kept until an attempt succeeds, for its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What can end it.
    pub category: Category,
    /// One `PascalCase` word.
    pub reason: &'static str,
    /// What happened, why, and what to do, for people.
    pub message: String,
    /// Whether it passes by itself and nobody need be told.
    pub is_expected: bool,
}

impl Failure {
    /// The failure that an error amounts to, with its whole chain of causes in the message.
    pub fn of(error: &impl Reported) -> Self {
        Self {
            category: error.category(),
            reason: error.reason(),
            message: with_causes(error),
            is_expected: error.is_expected(),
        }
    }

    /// That a pass took too long.
    pub(crate) fn timed_out(patience: Duration) -> Self {
        let message = format!(
            "reconciling took longer than {} s: the API server does not answer; retrying",
            patience.as_secs()
        );
        Self { category: Category::Transient, reason: "TimedOut", message, is_expected: false }
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
