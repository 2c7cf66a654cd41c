use std::time::Duration;

use super::{
    refusal::{self, is_unanswered_webhook, own_words},
    unknown_field,
};
use crate::object::Named;

/// The reason why a write failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteCause {
    /// An object with the name exists.
    AlreadyExists,
    /// The object is gone.
    Gone,
    /// The server does not serve the kind, at least in this version. Its objects may still be stored.
    KindNotServed,
    /// There is no such namespace to create the object in.
    NamespaceMissing,
    /// The object was replaced or changed meanwhile.
    Changed {
        /// The server's message.
        message: String,
    },
    /// The namespace is being deleted and accepts no new object.
    NamespaceTerminating,
    /// The definition of the kind is being deleted and accepts no new object.
    DefinitionTerminating,
    /// A quota is exhausted.
    QuotaExceeded {
        /// The server's message.
        message: String,
    },
    /// A quota requires a value that is missing on the object, such as a limit.
    QuotaRefused {
        /// The server's message.
        message: String,
    },
    /// The server's check of owner references does not yet know a kind whose CRD is new; it is updated every 30 s.
    OwnerKindUnknown,
    /// The server does not allow it.
    Forbidden {
        /// The server's message.
        message: String,
    },
    /// The server does not accept the object.
    Invalid {
        /// The server's message.
        message: String,
        /// The fields that it names, in its notation.
        fields: Vec<String>,
    },
    /// The server does not accept a status: a policy or webhook refuses it, a right is missing, or the definition has
    /// other fields.
    StatusRefused {
        /// The server's message.
        message: String,
        /// Whether it is invalid, rather than forbidden.
        is_invalid: bool,
    },
    /// The server is overloaded.
    Busy {
        /// The server's message.
        message: String,
        /// The delay that it asked for.
        retry_after: Duration,
    },
    /// Anything else, such as a broken connection: the write may have taken effect.
    Unknown {
        /// The HTTP status of the answer; 0 if there was none.
        code: u16,
        /// The server's message, or the reason why there is none.
        message: String,
    },
}

impl WriteCause {
    /// Whether it may concern this object alone, so that the same write may succeed for another one.
    #[must_use]
    pub fn may_concern_one_object(&self) -> bool {
        match self {
            Self::AlreadyExists
            | Self::Gone
            | Self::Changed { .. }
            | Self::Forbidden { .. }
            | Self::StatusRefused { .. }
            | Self::Invalid { .. } => true,
            // A webhook that does not answer may concern some objects only, but a server that does not answer
            // concerns all.
            Self::Unknown { code, .. } => *code != 0,
            Self::KindNotServed
            | Self::NamespaceMissing
            | Self::NamespaceTerminating
            | Self::DefinitionTerminating
            | Self::QuotaExceeded { .. }
            | Self::QuotaRefused { .. }
            | Self::OwnerKindUnknown
            | Self::Busy { .. } => false,
        }
    }

    /// The server's words, if it refuses this very write, also for a webhook that does not answer. A request that merely
    /// failed is no refusal.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Forbidden { message } | Self::Invalid { message, .. } => Some(message),
            Self::Unknown { message, .. } if is_unanswered_webhook(message) => Some(message),
            _ => None,
        }
    }

    /// Whether the server refuses a field that it does not know and would otherwise drop.
    #[must_use]
    pub fn is_unknown_field(&self) -> bool {
        matches!(self, Self::Invalid { message, .. } if unknown_field::is_refused(message))
    }

    /// The reason as one `PascalCase` word, for conditions and Events.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::AlreadyExists => "AlreadyExists",
            Self::Gone => "NotFound",
            Self::KindNotServed => "KindNotServed",
            Self::NamespaceMissing => "NamespaceMissing",
            Self::Changed { .. } => "Conflict",
            Self::NamespaceTerminating => "NamespaceTerminating",
            Self::DefinitionTerminating => "DefinitionTerminating",
            Self::QuotaExceeded { .. } => "QuotaExceeded",
            Self::QuotaRefused { .. } => "QuotaRefused",
            Self::OwnerKindUnknown => "OwnerKindUnknown",
            Self::Forbidden { .. } => "Forbidden",
            Self::Invalid { .. } => "Invalid",
            Self::StatusRefused { .. } => "StatusRefused",
            Self::Busy { .. } => "ServerBusy",
            Self::Unknown { .. } => "WriteFailed",
        }
    }

    /// Whether the answer leaves open if the write took effect: there was none, or something behind the API server did not
    /// answer it in time.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        matches!(
            self,
            Self::Unknown { code, message }
                if matches!(code, 0 | 504) || own_words(message).contains("etcdserver")
        )
    }

    /// Whether the write may have taken effect although it failed: unless the API server refused it, or asked a webhook in
    /// vain before it, whatever answered may have failed only after that.
    #[must_use]
    pub fn may_have_worked(&self) -> bool {
        let is_unadmitted = matches!(self, Self::Unknown { message, .. } if is_unanswered_webhook(message));
        !is_unadmitted && !(400..500).contains(&self.code())
    }

    /// The HTTP status of the answer; 0 if there was none.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::AlreadyExists | Self::Changed { .. } => 409,
            Self::Gone | Self::KindNotServed | Self::NamespaceMissing => 404,
            Self::NamespaceTerminating
            | Self::DefinitionTerminating
            | Self::QuotaExceeded { .. }
            | Self::QuotaRefused { .. }
            | Self::OwnerKindUnknown
            | Self::StatusRefused { is_invalid: false, .. }
            | Self::Forbidden { .. } => 403,
            Self::Invalid { .. } | Self::StatusRefused { .. } => 422,
            Self::Busy { .. } => 429,
            Self::Unknown { code, .. } => *code,
        }
    }

    /// The failure and its remedy, for people.
    pub(super) fn told_of(&self, object: &Named) -> String {
        let kind = &object.kind;
        match self {
            Self::AlreadyExists => format!("{object} already exists"),
            Self::Gone => format!("{object} is gone"),
            Self::KindNotServed => format!(
                "{object} cannot be written, because the cluster does not serve its kind in this version; install its CustomResourceDefinition, or set served: true for a version of it"
            ),
            Self::NamespaceMissing => {
                format!(
                    "{object} cannot be written, because its namespace does not exist; create the namespace"
                )
            }
            Self::Changed { message } => {
                format!("{object} was changed or replaced in the meantime: {message}")
            }
            Self::NamespaceTerminating => format!("the namespace is terminating and accepts no new {kind}"),
            Self::DefinitionTerminating => format!(
                "the CustomResourceDefinition of {kind} is being deleted and accepts no new object; create it again, or wait until it is gone"
            ),
            Self::QuotaExceeded { message } => {
                format!("a quota refuses {object}: {message}; raise the ResourceQuota, or request less")
            }
            Self::QuotaRefused { message } => format!(
                "a quota refuses {object}: {message}; if it demands requests or limits, set them in the template, or give the namespace a LimitRange with defaults"
            ),
            Self::OwnerKindUnknown => format!(
                "the API server does not know the kind of the owner of {object} yet; it learns of it within 30 s"
            ),
            Self::Forbidden { message } => {
                format!("{object} is refused: {message}; {}", refusal::way_out(message))
            }
            Self::Invalid { message, fields } if self.is_unknown_field() => format!(
                "{object} is rejected, because the API server would drop {}, which is not in its schema: {message}; correct the name of the field where it is set, or, if it is right, upgrade the definition of {kind}",
                fields.join(" and ")
            ),
            Self::Invalid { message, .. } => format!(
                "{object} is rejected: {message}; if it is rendered from a template, correct that or spec.parameters"
            ),
            Self::StatusRefused { message, .. } => format!(
                "the status of {object} cannot be written: {} refuses it: {message}; {}",
                refusal::refuser(message),
                refusal::way_to_report(message)
            ),
            Self::Busy { message, .. } => format!("the API server is busy: {message}"),
            Self::Unknown { message, .. } => format!("writing {object} failed: {message}"),
        }
    }
}
