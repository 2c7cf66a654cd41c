//! Failed requests, in Kubernetes terms, and their remedies: one type for reads, watches and writes.

mod cause;
mod describe;
mod message;

use std::{iter, time::Duration};

use kube::core::response::Status;

use crate::{Failure, live::Silence, object::ObjectName};

pub use cause::Cause;

/// The answer to a JSON patch with a failed test.
const FAILED_TEST: &str = "the server rejected our request due to an error in our request";

/// The purpose of a request, on which the words for its failure depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads an object, or looks up a kind.
    Read,
    /// Lists and watches a kind.
    Watch,
    /// Writes an object.
    Write,
    /// Writes the status of an object.
    WriteStatus,
}

/// A failed request. A write may have taken effect nevertheless: [`ApiError::may_have_taken_effect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The purpose of the request.
    pub verb: Verb,
    /// The object of the request; of a watch, only its kind.
    pub object: ObjectName,
    /// The reason of the failure.
    pub cause: Cause,
    /// The server's message, or the reason why there is none.
    pub message: String,
    /// The fields that the server names, in its notation.
    pub fields: Vec<String>,
    /// The HTTP status of the answer; 0 if there was none.
    pub code: u16,
    /// The seconds for which a busy server asks.
    busy_for: u32,
}

impl ApiError {
    /// The failure of a request that the client does not know, about an object of this kind and name.
    #[must_use]
    pub fn new(verb: Verb, object: impl Into<ObjectName>, cause: Cause, message: impl Into<String>) -> Self {
        let (object, message) = (object.into(), message.into());
        Self { verb, object, cause, message, fields: Vec::new(), code: 0, busy_for: 1 }
    }

    /// Classifies an error of the client.
    #[must_use]
    pub fn of(verb: Verb, error: &kube::Error, object: impl Into<ObjectName>) -> Self {
        match error {
            kube::Error::Api(status) => Self::answered(verb, status, object.into()),
            kube::Error::Service(error) if error.is::<Silence>() => {
                Self::new(verb, object, Cause::Silent, error.to_string())
            }
            kube::Error::BuildRequest(_) => Self::new(verb, object, Cause::NotSent, with_causes(error)),
            // The client's own text repeats the server's answer in Rust's debug format, but there was none.
            error => Self::new(verb, object, Cause::Unanswered, with_causes(error)),
        }
    }

    fn answered(verb: Verb, status: &Status, object: ObjectName) -> Self {
        let (cause, details) = (Cause::of(verb, status, &object), status.details.as_ref());
        let message = match &*status.message {
            "" => format!("the API server answered {} {}", status.code, status.reason).trim_end().to_owned(),
            message => message::without_object(message).to_owned(),
        };
        let fields = if cause == Cause::UnknownField {
            Self::unknown_fields(&message)
        } else {
            let causes = details.into_iter().flat_map(|details| &details.causes);
            causes.map(|cause| cause.field.clone()).filter(|field| !field.is_empty()).collect()
        };
        let busy_for = details.map_or(1, |details| details.retry_after_seconds.max(1));
        Self { fields, code: status.code, busy_for, ..Self::new(verb, object, cause, message) }
    }

    /// Converts the error of a JSON patch with a failed test, which the server answers like an invalid object, but
    /// without its field.
    #[must_use]
    pub fn of_failed_test(self) -> Self {
        let is_failed_test = self.cause == Cause::Invalid && self.message.starts_with(FAILED_TEST);
        if is_failed_test { Self { cause: Cause::Conflict, ..self } } else { self }
    }

    /// Converts the error of a write to a status.
    #[must_use]
    pub fn of_status(self) -> Self {
        // For most policies, the API server answers like for an invalid object.
        let is_by_admission = self.cause == Cause::Invalid && message::gatekeeper(&self.message).is_some();
        let cause = if is_by_admission { Cause::Forbidden } else { self.cause };
        Self { verb: Verb::WriteStatus, cause, ..self }
    }

    /// Adds the source of a field that the server does not know.
    #[must_use]
    pub fn with_template(mut self, template: &str) -> Self {
        if (self.verb, self.cause) == (Verb::Write, Cause::UnknownField) {
            self.message = format!("{}; {template} sets it", self.message);
        }
        self
    }

    /// Whether the object was changed, replaced or deleted meanwhile.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        matches!(self.cause, Cause::NotFound | Cause::Conflict)
    }

    /// Whether it may concern this object alone, so that the same write may succeed for another one.
    #[must_use]
    pub fn concerns_one_object(&self) -> bool {
        // A webhook that does not answer may concern some objects only, but a server that does not answer concerns all.
        let is_answered = self.code != 0 && matches!(self.cause, Cause::Unanswered | Cause::Failed);
        is_answered || self.is_refusal() || self.is_stale() || self.cause == Cause::AlreadyExists
    }

    /// Whether the server refuses this very write, also for a webhook that does not answer. A request that merely failed
    /// is no refusal.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        let refusals = [Cause::Forbidden, Cause::Invalid, Cause::UnknownField, Cause::WebhookUnanswered];
        refusals.contains(&self.cause)
    }

    /// Whether the write may have taken effect although it failed: unless the API server refused it, or asked a webhook in
    /// vain before it, whatever answered may have failed only after that.
    #[must_use]
    pub fn may_have_taken_effect(&self) -> bool {
        self.is_unanswered() || self.cause == Cause::Failed && !(400..500).contains(&self.code)
    }

    /// Whether the answer leaves open if the write took effect: there was none, or something behind the API server did not
    /// answer it in time.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        matches!(self.cause, Cause::Silent | Cause::Unanswered)
    }

    /// The delay that a busy server asks for, or after which the answer may be another one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = match self.cause {
            Cause::Busy => self.busy_for,
            // The observation is stale; the event with the current state is on its way.
            Cause::Conflict | Cause::NotFound => 1,
            Cause::OwnerKindUnknown => 3,
            _ => return None,
        };
        Some(Duration::from_secs(seconds.into()))
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        let is_write = matches!(error.verb, Verb::Write | Verb::WriteStatus);
        let is_stalled = match error.cause {
            Cause::Forbidden => matches!(error.verb, Verb::Read | Verb::WriteStatus),
            Cause::Unreadable => true,
            Cause::Invalid | Cause::UnknownField => is_write,
            _ => false,
        };
        Self {
            is_stalled,
            is_expected: is_write && (error.is_stale() || error.cause == Cause::NamespaceTerminating),
            retry_after: error.retry_after().filter(|_| is_write),
            ..Self::transient(error.reason(), error.to_string())
        }
    }
}

/// An error's text with its whole chain of causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    for cause in iter::successors(error.source(), |error| error.source()).map(ToString::to_string) {
        // Some libraries repeat the cause in their own text.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
