//! What is reported of a failed request: its reason as one word, and what happened, why, and what to do.

use std::{error::Error, fmt};

use super::{ApiError, Cause, Verb, message};

/// The remedy where a right is missing: the server's message says who cannot do what.
const MISSING_RIGHT: &str = "grant it to the controller's ServiceAccount";
/// The remedy for any other refusal.
const REFUSED: &str =
    "follow this message, or correct the template, the parameters or the policies of the namespace";
/// The remedy where only the API server itself refuses a status.
const OLD_DEFINITION: &str = "check that the CustomResourceDefinition is as new as the controller";

impl ApiError {
    /// The reason as one `PascalCase` word, for conditions and Events.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match (self.verb, self.cause) {
            (Verb::WriteStatus, Cause::Forbidden | Cause::Invalid | Cause::UnknownField) => "StatusRefused",
            (_, Cause::Forbidden) => "Forbidden",
            (_, Cause::Unreadable) => "Unreadable",
            (Verb::Read | Verb::Watch, _) => "LookUpFailed",
            (_, Cause::AlreadyExists) => "AlreadyExists",
            (_, Cause::NotFound) => "NotFound",
            (_, Cause::KindNotServed) => "KindNotServed",
            (_, Cause::NamespaceMissing) => "NamespaceMissing",
            (_, Cause::Conflict) => "Conflict",
            (_, Cause::NamespaceTerminating) => "NamespaceTerminating",
            (_, Cause::DefinitionTerminating) => "DefinitionTerminating",
            (_, Cause::QuotaExceeded) => "QuotaExceeded",
            (_, Cause::QuotaRefused) => "QuotaRefused",
            (_, Cause::OwnerKindUnknown) => "OwnerKindUnknown",
            (_, Cause::Invalid | Cause::UnknownField) => "Invalid",
            (_, Cause::Busy) => "ServerBusy",
            _ => "WriteFailed",
        }
    }
}

impl Error for ApiError {}

/// The failure and its remedy, for people.
impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, message, .. } = self;
        let kind = &object.kind;
        let text = match (self.verb, self.cause) {
            (Verb::Read, Cause::Forbidden) => format!(
                "{object} cannot be read: {message}; grant get, list and watch on its kind to the controller's ServiceAccount"
            ),
            (Verb::Read, Cause::Unreadable) => format!(
                "{object} cannot be read completely: {message}; reduce its nesting, or handle the object by hand"
            ),
            (Verb::Read, _) => format!("cannot look up {object}: {message}; retrying"),
            (Verb::Watch, Cause::KindNotServed) => format!(
                "{kind} is not served by the cluster: install its CustomResourceDefinition, or set served: true for a version of it; the watch then starts by itself"
            ),
            (Verb::Watch, Cause::Forbidden) => format!(
                "{kind} cannot be watched: {message}; grant get, list and watch on it to the controller's ServiceAccount, or correct its plural"
            ),
            (Verb::Watch, _) => format!("{kind} cannot be watched: {message}; retrying"),
            (Verb::WriteStatus, Cause::Forbidden | Cause::Invalid | Cause::UnknownField) => {
                let (refuser, remedy) = match message::gatekeeper(message) {
                    Some(gatekeeper) => (gatekeeper, "allow the controller's ServiceAccount to write it"),
                    None if message.contains(" cannot ") => ("API server", MISSING_RIGHT),
                    None => ("API server", OLD_DEFINITION),
                };
                format!(
                    "the status of {object} cannot be written: the {refuser} refuses it: {message}; {remedy}"
                )
            }
            (_, Cause::AlreadyExists) => format!("{object} already exists"),
            (Verb::WriteStatus, Cause::NotFound) => {
                format!("{object} is gone, or its kind has no status any more")
            }
            (_, Cause::NotFound) => format!("{object} is gone"),
            (_, Cause::KindNotServed) => format!(
                "{object} cannot be written, because the cluster does not serve its kind in this version; install its CustomResourceDefinition, or set served: true for a version of it"
            ),
            (_, Cause::NamespaceMissing) => format!(
                "{object} cannot be written, because its namespace does not exist; create the namespace"
            ),
            (_, Cause::Conflict) => {
                format!("{object} was changed or replaced in the meantime: {message}")
            }
            (_, Cause::NamespaceTerminating) => {
                format!("the namespace is terminating and accepts no new {kind}")
            }
            (_, Cause::DefinitionTerminating) => format!(
                "the CustomResourceDefinition of {kind} is being deleted and accepts no new object; create it again, or wait until it is gone"
            ),
            (_, Cause::QuotaExceeded) => {
                format!("a quota refuses {object}: {message}; raise the ResourceQuota, or request less")
            }
            (_, Cause::QuotaRefused) => format!(
                "a quota refuses {object}: {message}; if it demands requests or limits, set them in the template, or give the namespace a LimitRange with defaults"
            ),
            (_, Cause::OwnerKindUnknown) => format!(
                "the API server does not know the kind of the owner of {object} yet; it learns of it within 30 s"
            ),
            (_, Cause::Forbidden) => {
                let remedy = if message.contains(" cannot ") { MISSING_RIGHT } else { REFUSED };
                format!("{object} is refused: {message}; {remedy}")
            }
            (_, Cause::UnknownField) => format!(
                "{object} is rejected, because the API server would drop {}, which is not in its schema: {message}; correct the name of the field where it is set, or, if it is right, upgrade the definition of {kind}",
                self.fields.join(" and ")
            ),
            (_, Cause::Invalid) => format!(
                "{object} is rejected: {message}; if it is rendered from a template, correct that or spec.parameters"
            ),
            (_, Cause::Busy) => format!("the API server is busy: {message}"),
            _ => format!("writing {object} failed: {message}"),
        };
        f.write_str(&text)
    }
}
