//! Failed live reads and their remedies.

use thiserror::Error;

use crate::{
    object::Named,
    report::{Category, Reported, with_causes},
};

/// A failed read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", cause.told_of(object))]
pub struct ReadError {
    /// The object of the read.
    pub object: Named,
    /// The reason of the failure.
    pub cause: ReadCause,
}

/// Why a read failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadCause {
    /// The server does not allow it.
    Forbidden {
        /// The server's message.
        message: String,
    },
    /// It is there, but not all of it can be decoded: it is nested too deep.
    Unreadable {
        /// The decoder's message.
        message: String,
    },
    /// Anything else, such as a broken connection.
    Unanswered {
        /// The server's message, or the reason why there is none.
        message: String,
    },
}

impl ReadError {
    /// Converts an error of the client.
    #[must_use]
    pub fn of(error: &kube::Error, kind: &str, name: &str) -> Self {
        let message = words(error);
        let cause = match error {
            kube::Error::Api(status) if status.code == 403 => ReadCause::Forbidden { message },
            _ => ReadCause::Unanswered { message },
        };
        Self { object: Named::new(kind, name), cause }
    }

    /// A read without an answer, or without one that says enough.
    #[must_use]
    pub fn unanswered(kind: &str, name: &str, message: impl Into<String>) -> Self {
        let cause = ReadCause::Unanswered { message: message.into() };
        Self { object: Named::new(kind, name), cause }
    }
}

impl ReadCause {
    /// The failure and its remedy, for people.
    fn told_of(&self, object: &Named) -> String {
        match self {
            Self::Forbidden { message } => format!(
                "{object} cannot be read: {message}; grant get, list and watch on its kind to the controller's ServiceAccount"
            ),
            Self::Unreadable { message } => format!(
                "{object} cannot be read completely: {message}; reduce its nesting, or handle the object by hand"
            ),
            Self::Unanswered { message } => format!("cannot look up {object}: {message}; retrying"),
        }
    }
}

impl Reported for ReadError {
    fn category(&self) -> Category {
        match self.cause {
            ReadCause::Forbidden { .. } | ReadCause::Unreadable { .. } => Category::WaitsForChange,
            ReadCause::Unanswered { .. } => Category::Transient,
        }
    }

    fn reason(&self) -> &'static str {
        match self.cause {
            ReadCause::Forbidden { .. } => "Forbidden",
            ReadCause::Unreadable { .. } => "Unreadable",
            ReadCause::Unanswered { .. } => "LookUpFailed",
        }
    }
}

/// The message of an error to users. The client's own text repeats the server's answer in Rust's debug format.
pub(crate) fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.message.is_empty() => {
            format!("the API server answered {} {}", status.code, status.reason).trim_end().to_owned()
        }
        kube::Error::Api(status) => status.message.clone(),
        error => with_causes(error),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::response::Status;

    use super::*;

    #[test]
    fn the_servers_words_are_told_and_nothing_of_how_they_came() {
        let refused =
            kube::Error::Api(Box::new(Status::failure("jobs is forbidden", "Forbidden").with_code(403)));
        let error = ReadError::of(&refused, "Job", "cook");
        assert_eq!(
            error.to_string(),
            "Job \"cook\" cannot be read: jobs is forbidden; grant get, list and watch on its kind to the controller's ServiceAccount"
        );
        assert_eq!((error.reason(), error.category()), ("Forbidden", Category::WaitsForChange));
        let silent = kube::Error::Api(Box::new(Status::failure("", "ServiceUnavailable").with_code(503)));
        let error = ReadError::of(&silent, "Job", "cook");
        assert_eq!(
            error.to_string(),
            "cannot look up Job \"cook\": the API server answered 503 ServiceUnavailable; retrying"
        );
        assert_eq!((error.reason(), error.category()), ("LookUpFailed", Category::Transient));
    }
}
