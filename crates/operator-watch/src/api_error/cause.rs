use kube::core::response::{Status, StatusCause, reason};

use super::{Verb, message};
use crate::object::ObjectName;

/// The reason for which nothing can be created of a kind whose definition is being deleted.
pub(super) const DEFINITION_TERMINATING: &str =
    "create not allowed while custom resource definition is terminating";
/// The reason for which a kind that is new cannot be named as an owner.
pub(super) const OWNER_KIND_UNKNOWN: &str =
    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for ";
/// The reason of a `ResourceQuota` that is exhausted.
pub(super) const QUOTA_EXCEEDED: &str = "exceeded quota: ";
/// The reasons of a `ResourceQuota` that refuses although it is not exhausted: a value is missing on the object,
/// nothing covers its scope, or the quota is so new that its use has not been counted.
pub(super) const QUOTA_REFUSALS: [&str; 3] =
    ["failed quota: ", "insufficient quota to match these scopes: ", "status unknown for quota: "];
/// The answer to an apply with a value of a wrong type.
const WRONG_TYPE: &str = "failed to create typed patch object";

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// An object with the name exists.
    AlreadyExists,
    /// The object is gone, or was never there.
    NotFound,
    /// The server does not serve the kind, at least in this version. Its objects may still be stored.
    KindNotServed,
    /// There is no such namespace to create the object in.
    NamespaceMissing,
    /// The object was replaced or changed meanwhile.
    Conflict,
    /// The namespace is being deleted and accepts no new object.
    NamespaceTerminating,
    /// The definition of the kind is being deleted and accepts no new object.
    DefinitionTerminating,
    /// A quota is exhausted.
    QuotaExceeded,
    /// A quota requires a value that is missing on the object, such as a limit.
    QuotaRefused,
    /// The server's check of owner references does not yet know a kind whose CRD is new; it is updated every 30 s.
    OwnerKindUnknown,
    /// The server does not allow it, or admission refuses it.
    Forbidden,
    /// The server does not accept the object.
    Invalid,
    /// The server does not know a field of the object, and would drop it.
    UnknownField,
    /// The object is there, but not all of it can be decoded: it is nested too deep.
    Unreadable,
    /// The server is overloaded.
    Busy,
    /// A webhook does not answer, so that the server has not done it.
    WebhookUnanswered,
    /// The request was not sent.
    NotSent,
    /// No answer came within our own time limit.
    Silent,
    /// The answer is lost, or something behind the API server did not answer it in time.
    Unanswered,
    /// Anything else.
    Failed,
}

impl Cause {
    /// The reason of a failure by the server's answer. Where only its message says it, a value that the message quotes
    /// counts for nothing.
    pub(super) fn of(verb: Verb, status: &Status, object: &ObjectName) -> Self {
        let (message, details) = (&*status.message, status.details.as_ref());
        let grounds = message::grounds(message);
        let has_cause = |is_it: fn(&StatusCause) -> bool| {
            details.into_iter().flat_map(|details| &details.causes).any(is_it)
        };
        // The answer about the path of a kind that is not served may be any, but only one about the object names it.
        let is_about_object = match verb {
            Verb::Read => details.is_some_and(|about| about.name == object.name),
            Verb::Watch => false,
            Verb::Write | Verb::WriteStatus => true,
        };
        match status.code {
            // A webhook chooses the code of its refusal.
            404 | 409 | 429 if message::gatekeeper(message).is_some() => Self::Forbidden,
            403 | 405 if grounds.starts_with(DEFINITION_TERMINATING) => Self::DefinitionTerminating,
            409 if status.is_already_exists() => Self::AlreadyExists,
            409 => Self::Conflict,
            // The answer about a kind that is not served is a page, and has no reason.
            404 if status.reason != reason::NOT_FOUND || !is_about_object => Self::KindNotServed,
            404 if object.kind != "Namespace" && details.is_some_and(|about| about.kind == "namespaces") => {
                Self::NamespaceMissing
            }
            404 => Self::NotFound,
            403 if has_cause(|cause| cause.reason == "NamespaceTerminating") => Self::NamespaceTerminating,
            403 if grounds.starts_with(OWNER_KIND_UNKNOWN) => Self::OwnerKindUnknown,
            403 if grounds.starts_with(QUOTA_EXCEEDED) => Self::QuotaExceeded,
            403 if QUOTA_REFUSALS.iter().any(|refusal| grounds.starts_with(refusal)) => Self::QuotaRefused,
            403 => Self::Forbidden,
            // The server answers an apply with an unknown field or a value of a wrong type like a failure of its own.
            _ if message::is_refused(message) => Self::UnknownField,
            _ if message.starts_with(WRONG_TYPE) => Self::Invalid,
            // A merge patch with the uid of a former object: the server takes it for a change of the uid.
            422 if has_cause(|cause| cause.field == "metadata.uid") => Self::Conflict,
            400 | 422 => Self::Invalid,
            429 => Self::Busy,
            _ if message::is_unanswered_webhook(message) => Self::WebhookUnanswered,
            0 | 504 => Self::Unanswered,
            _ if message::own_text(message).contains("etcdserver") => Self::Unanswered,
            _ => Self::Failed,
        }
    }
}
