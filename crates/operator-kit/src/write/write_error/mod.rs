//! Why a write did not happen, in the words of the field, and what to do.

mod located;
mod refusal;

use std::time::Duration;

use kube::core::response::Status;
use thiserror::Error;

use crate::{
    report::{Category, Reported},
    watch::words,
};

/// How a `ResourceQuota` that is not used up refuses: something is not said of the object, nothing covers its scope, or
/// the quota is so new that its use has not been counted.
const QUOTA_WORDS: [&str; 3] =
    ["failed quota: ", "insufficient quota to match these scopes: ", "status unknown for quota: "];

/// A write that did not happen, as far as is known.
#[derive(Debug, Error)]
pub enum WriteError {
    /// An object of the name is there.
    #[error("{kind} {name:?} already exists")]
    AlreadyExists {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
    },
    /// The object is gone.
    #[error("{kind} {name:?} is gone")]
    Gone {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
    },
    /// The object is another one by now, or changed meanwhile.
    #[error("{kind} {name:?} is not the one that was seen any more: {message}")]
    Changed {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's words.
        message: String,
    },
    /// The namespace is being deleted and takes nothing new.
    #[error("the namespace is terminating and takes no new {kind}")]
    NamespaceTerminating {
        /// The object's kind.
        kind: String,
    },
    /// The definition of the kind is being deleted and takes nothing new.
    #[error(
        "the definition of {kind} is being deleted and takes no new object; create it again, or wait until it is gone"
    )]
    DefinitionTerminating {
        /// The object's kind.
        kind: String,
    },
    /// A quota is used up.
    #[error("a quota refuses {kind} {name:?}: {message}; raise the ResourceQuota or ask for less")]
    QuotaExceeded {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's words.
        message: String,
    },
    /// A quota asks for something that is not said of the object, such as a limit.
    #[error(
        "a quota refuses {kind} {name:?}: {message}; where it asks for requests or limits, set them in the template or give the namespace a LimitRange with defaults"
    )]
    QuotaRefused {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's words.
        message: String,
    },
    /// The server's check of owner references does not know a kind yet whose CRD is new: it learns every 30 s.
    #[error(
        "the API server has not learned yet of the kind that owns {kind} {name:?}; it does so within 30 s"
    )]
    OwnerKindUnknown {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
    },
    /// The server does not allow it.
    #[error("{kind} {name:?} is refused: {message}; {}", way_out(message))]
    Forbidden {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's words.
        message: String,
    },
    /// The server does not accept the object.
    #[error(
        "{kind} {name:?} is not accepted: {message}; if it comes from a template, correct that or spec.parameters"
    )]
    Invalid {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's words.
        message: String,
        /// The fields that it names, as it writes them.
        fields: Vec<String>,
    },
    /// The server does not take what a controller reports: a policy or webhook refuses it, a right is missing, or the
    /// definition knows other fields.
    #[error(
        "the status of {kind} {name:?} cannot be written: {} refuses it: {message}; {}",
        refusal::refuser(message),
        refusal::way_to_report(message)
    )]
    StatusRefused {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's words.
        message: String,
        /// Whether it is not valid, rather than not allowed.
        is_invalid: bool,
    },
    /// The server has too much to do.
    #[error("the API server is busy: {message}")]
    Busy {
        /// The server's words.
        message: String,
        /// When it asked to be tried again.
        retry_after: Duration,
    },
    /// Anything else, such as a broken connection: it may have happened.
    #[error("writing {kind} {name:?} failed: {message}")]
    Unknown {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The server's answer; 0 when there was none.
        code: u16,
        /// The server's words, or what kept them from coming.
        message: String,
    },
}

impl WriteError {
    /// That an object is gone.
    #[must_use]
    pub fn gone(kind: &str, name: &str) -> Self {
        Self::Gone { kind: kind.to_owned(), name: name.to_owned() }
    }

    /// Whether it may concern this object alone, so that the same may be done with another one.
    #[must_use]
    pub fn may_concern_one_object(&self) -> bool {
        match self {
            Self::AlreadyExists { .. }
            | Self::Gone { .. }
            | Self::Changed { .. }
            | Self::Forbidden { .. }
            | Self::StatusRefused { .. }
            | Self::Invalid { .. } => true,
            // A webhook that does not answer is asked for some objects only; a server that does not, for none.
            Self::Unknown { code, .. } => *code != 0,
            Self::NamespaceTerminating { .. }
            | Self::DefinitionTerminating { .. }
            | Self::QuotaExceeded { .. }
            | Self::QuotaRefused { .. }
            | Self::OwnerKindUnknown { .. }
            | Self::Busy { .. } => false,
        }
    }

    pub(crate) fn of(error: kube::Error, kind: &str, name: &str) -> Self {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        let kube::Error::Api(status) = error else {
            return Self::Unknown { kind, name, code: 0, message: words(&error) };
        };
        let message = status.message.clone();
        match status.code {
            _ if message.contains("custom resource definition is terminating") => {
                Self::DefinitionTerminating { kind }
            }
            409 if status.reason == "AlreadyExists" => Self::AlreadyExists { kind, name },
            409 => Self::Changed { kind, name, message },
            404 => Self::Gone { kind, name },
            403 if has_cause(&status, "NamespaceTerminating") => Self::NamespaceTerminating { kind },
            403 if message.contains("cannot find RESTMapping") => Self::OwnerKindUnknown { kind, name },
            403 if message.contains("exceeded quota") => Self::QuotaExceeded { kind, name, message },
            403 if QUOTA_WORDS.iter().any(|words| message.contains(words)) => {
                Self::QuotaRefused { kind, name, message }
            }
            403 => Self::Forbidden { kind, name, message },
            // An apply of a value of a wrong type is answered as if the server had failed.
            _ if message.starts_with("failed to create typed patch object") => {
                Self::Invalid { kind, name, message, fields: Vec::new() }
            }
            400 | 422 => Self::Invalid { kind, name, message, fields: fields(&status) },
            429 => Self::Busy { message, retry_after: retry_after(&status) },
            code => Self::Unknown { kind, name, code, message },
        }
    }

    /// A JSON patch whose test does not hold is answered as if the object were not valid.
    pub(crate) fn of_failed_test(self) -> Self {
        match self {
            Self::Invalid { kind, name, message, .. }
                // The API server does not say which test failed; of what is not valid it says the field.
                if message.contains("rejected our request due to an error in our request") =>
            {
                Self::Changed { kind, name, message }
            }
            error => error,
        }
    }

    /// What the error is where a status was to be written.
    pub(crate) fn of_status(self) -> Self {
        match self {
            Self::Forbidden { kind, name, message } => {
                Self::StatusRefused { kind, name, message, is_invalid: false }
            }
            Self::Invalid { kind, name, message, .. } => {
                // The API server answers for most policies as if the object were not valid.
                let is_invalid = !refusal::is_of_admission(&message);
                Self::StatusRefused { kind, name, message, is_invalid }
            }
            error => error,
        }
    }

    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::AlreadyExists { .. } | Self::Changed { .. } => 409,
            Self::Gone { .. } => 404,
            Self::NamespaceTerminating { .. }
            | Self::DefinitionTerminating { .. }
            | Self::QuotaExceeded { .. }
            | Self::QuotaRefused { .. }
            | Self::OwnerKindUnknown { .. }
            | Self::StatusRefused { is_invalid: false, .. }
            | Self::Forbidden { .. } => 403,
            Self::Invalid { .. } | Self::StatusRefused { .. } => 422,
            Self::Busy { .. } => 429,
            Self::Unknown { code, .. } => *code,
        }
    }
}

impl Reported for WriteError {
    fn category(&self) -> Category {
        match self {
            Self::Invalid { .. } | Self::StatusRefused { .. } => Category::WaitsForChange,
            _ => Category::Transient,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::AlreadyExists { .. } => "AlreadyExists",
            Self::Gone { .. } => "NotFound",
            Self::Changed { .. } => "Conflict",
            Self::NamespaceTerminating { .. } => "NamespaceTerminating",
            Self::DefinitionTerminating { .. } => "DefinitionTerminating",
            Self::QuotaExceeded { .. } => "QuotaExceeded",
            Self::QuotaRefused { .. } => "QuotaRefused",
            Self::OwnerKindUnknown { .. } => "OwnerKindUnknown",
            Self::Forbidden { .. } => "Forbidden",
            Self::Invalid { .. } => "Invalid",
            Self::StatusRefused { .. } => "StatusRefused",
            Self::Busy { .. } => "ServerBusy",
            Self::Unknown { .. } => "WriteFailed",
        }
    }

    fn is_expected(&self) -> bool {
        matches!(self, Self::Changed { .. } | Self::Gone { .. } | Self::NamespaceTerminating { .. })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => Some(*retry_after),
            // What was seen is stale; the event that shows the truth is on its way.
            Self::Changed { .. } | Self::Gone { .. } => Some(Duration::from_secs(1)),
            Self::OwnerKindUnknown { .. } => Some(Duration::from_secs(3)),
            _ => None,
        }
    }
}

fn has_cause(status: &Status, reason: &str) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == reason)
}

/// The fields that the server names; what it cannot decode it names in its words alone.
fn fields(status: &Status) -> Vec<String> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.map(|cause| cause.field.clone()).filter(|field| !field.is_empty()).collect()
}

/// What to do about a refusal: the server says of a missing right who cannot do what.
fn way_out(message: &str) -> &'static str {
    if message.contains(" cannot ") {
        "grant it to the controller's ServiceAccount"
    } else {
        "do as it says, or correct the template, the parameters or the rules of the namespace"
    }
}

fn retry_after(status: &Status) -> Duration {
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(u64::from(seconds.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden(message: &str) -> WriteError {
        let status = Status { code: 403, message: message.to_owned(), ..Status::default() };
        WriteError::of(kube::Error::Api(Box::new(status)), "Pod", "web-x")
    }

    #[test]
    fn a_quota_that_refuses_is_no_missing_permission() {
        let unsaid =
            forbidden("pods \"web-x\" is forbidden: failed quota: q: must specify limits.cpu for: main");
        assert_eq!(unsaid.reason(), "QuotaRefused");
        assert!(unsaid.to_string().contains("LimitRange") && !unsaid.to_string().contains("permission"));
        assert_eq!(
            forbidden("pods is forbidden: exceeded quota: q, requested: pods=1").reason(),
            "QuotaExceeded"
        );
        let unallowed = forbidden("pods is forbidden: User \"x\" cannot create resource");
        assert_eq!(unallowed.reason(), "Forbidden");
        assert!(unallowed.to_string().contains("ServiceAccount"));
        let limited = forbidden("pods \"web-x\" is forbidden: minimum memory usage per Container is 256Mi");
        assert!(!limited.to_string().contains("ServiceAccount"), "{limited}");
    }

    #[test]
    fn a_status_that_is_refused_is_told_with_who_refuses_and_without_a_word_of_templates() {
        let refused = |code, message: &str| {
            let status = Status { code, message: message.to_owned(), ..Status::default() };
            WriteError::of(kube::Error::Api(Box::new(status)), "Pod", "web-x").of_status()
        };
        let by_policy = "pods \"web-x\" is forbidden: ValidatingAdmissionPolicy 'still' with binding 'b' denied request: no";
        let by_webhook = "admission webhook \"still.example.com\" denied the request: no";
        let by_rights = "pods \"web-x\" is forbidden: User \"x\" cannot patch resource \"pods/status\"";
        let by_schema = "Pod \"web-x\" is invalid: status.phase: Unsupported value";
        for (code, message, part, is_of_schema) in [
            (422, by_policy, "the ValidatingAdmissionPolicy 'still' refuses it", false),
            (403, by_policy, "let the controller's ServiceAccount write it", false),
            (400, by_webhook, "the admission webhook \"still.example.com\" refuses it", false),
            (403, by_rights, "grant it to the controller's ServiceAccount", false),
            (422, by_schema, "CustomResourceDefinition", true),
        ] {
            let error = refused(code, message);
            assert!(
                matches!(error, WriteError::StatusRefused { is_invalid, .. } if is_invalid == is_of_schema)
            );
            let said = error.to_string();
            assert!(said.starts_with("the status of Pod \"web-x\"") && said.contains(part), "{said}");
            assert!(!said.contains("template") && !said.contains("parameters"), "{said}");
        }
        let busy = WriteError::Busy { message: String::new(), retry_after: Duration::ZERO };
        assert_eq!(busy.of_status().reason(), "ServerBusy");
    }

    #[test]
    fn nobody_is_asked_for_a_permission_while_the_definition_is_being_deleted() {
        let message = "create not allowed while custom resource definition is terminating";
        for code in [403, 405] {
            let status = Status::failure(message, "Forbidden").with_code(code);
            let error = WriteError::of(kube::Error::Api(Box::new(status)), "Gadget", "it");
            assert_eq!(error.reason(), "DefinitionTerminating");
            assert!(!error.to_string().contains("grant"), "{error}");
        }
    }
}
