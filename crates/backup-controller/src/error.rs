//! An obstacle between an object and its backup.

use catena_api::reason;
use operator_templates::TemplateError;
use operator_watch::{ApiError, Cause, Failure};
use thiserror::Error;

/// An obstacle between an object and its backup.
#[derive(Debug, Error)]
pub enum Error {
    /// There is nothing to create.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// A request failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The cluster has stopped serving the kind of the object itself.
    #[error(
        "{kind} {name:?} cannot be read, because {api_version} is no longer served; it stays held until a version is served: set served: true for one in the CustomResourceDefinition"
    )]
    NotServed {
        /// The API version that was read until now.
        api_version: String,
        /// The kind.
        kind: String,
        /// The object's name.
        name: String,
    },
}

/// The reason why no backup can be created or judged until somebody changes something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unusable {
    /// The template renders no object.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The template's name does not follow from the suffix.
    #[error(
        "the template {backup:?} renders the name {name:?}, which does not contain the suffix, so that two backups would have the same name; write, for example, {{{{ name ~ \"-\" ~ suffix }}}}"
    )]
    NotUnique {
        /// The backup's name in the settings.
        backup: String,
        /// The rendered name.
        name: String,
    },
    /// The template sets a namespace of its own.
    #[error(
        "the template {backup:?} sets metadata.namespace to {found:?}; remove it, and set backups.{backup}.namespace instead"
    )]
    OtherNamespace {
        /// The backup's name in the settings.
        backup: String,
        /// The rendered namespace.
        found: String,
    },
    /// A cluster-scoped object has a backup that needs a namespace.
    #[error(
        "backups.{backup}.namespace is not set, and the object is cluster-scoped, so that its backup has no namespace; set it"
    )]
    NoNamespace {
        /// The backup's name in the settings.
        backup: String,
    },
    /// The backup would go to a namespace that is being deleted.
    #[error(
        "the namespace {namespace:?} is being deleted and accepts no new {kind}; set backups.{backup}.namespace in the controller's values to another one, or release the object without a backup with the \
         annotation catena.dev/force-release: <uid> <reason>"
    )]
    NamespaceTerminating {
        /// The backup's name in the settings.
        backup: String,
        /// The backup's kind.
        kind: String,
        /// The namespace.
        namespace: String,
    },
    /// The backup would go to a namespace that does not exist.
    #[error(
        "no {kind} can be created in the namespace {namespace:?}, which was not found; create the namespace, or set backups.{backup}.namespace in the controller's values to another one"
    )]
    NamespaceMissing {
        /// The backup's name in the settings.
        backup: String,
        /// The backup's kind.
        kind: String,
        /// The namespace.
        namespace: String,
    },
    /// The look-up of the backup failed.
    #[error(transparent)]
    OutOfReach(Box<ApiError>),
    /// The cluster does not serve the kind of the backup.
    #[error(
        "the cluster does not serve {kind} in {api_version}; set backups.{backup}.apiVersion in the controller's values to a served version, or install the CustomResourceDefinition"
    )]
    NotServed {
        /// The backup's name in the settings.
        backup: String,
        /// The API version in the settings.
        api_version: String,
        /// The backup's kind.
        kind: String,
    },
    /// The template sets an owner on the backup.
    #[error(
        "the template {backup:?} sets metadata.ownerReferences, so that the backup would be deleted with its owner; remove that field"
    )]
    HasOwner {
        /// The backup's name in the settings.
        backup: String,
    },
    /// Somebody made the object the owner of its backup.
    #[error(
        "{title} is owned by the object and would be deleted with it, so that it proves nothing; remove the owner reference, and find out who sets it"
    )]
    Owned {
        /// The backup.
        title: String,
    },
    /// Another object has the name of the backup.
    #[error(
        "{title} exists, but does not count as the backup of this object: {why}; delete it, or change the name in the template"
    )]
    NameTaken {
        /// The object.
        title: String,
        /// The reason why it does not count.
        why: &'static str,
    },
    /// The API server will not store the backup.
    #[error(
        "the backup by the template {backup:?}, a {kind}, would have {size} bytes, and the API server stores at most {limit}: {remedy}; otherwise the object is held when it is deleted"
    )]
    TooLarge {
        /// The backup's name in the settings.
        backup: String,
        /// The backup's kind.
        kind: String,
        /// Its size, in bytes, as far as it is limited.
        size: usize,
        /// The maximum of it.
        limit: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// All attempt numbers are used up.
    #[error(
        "{tries} backups failed, and no further attempt is made; release the object without a backup with the annotation \
             catena.dev/force-release: <uid> <reason>"
    )]
    Exhausted {
        /// The number of attempts.
        tries: u32,
    },
}

impl Unusable {
    /// One `PascalCase` word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Template(error) => error.reason,
            Self::NotUnique { .. } => reason::BACKUP_NAME_NOT_UNIQUE,
            Self::OtherNamespace { .. } => reason::BACKUP_IN_OTHER_NAMESPACE,
            Self::NoNamespace { .. } => reason::BACKUP_WITHOUT_NAMESPACE,
            Self::NamespaceTerminating { .. } => reason::NAMESPACE_TERMINATING,
            Self::NamespaceMissing { .. } => reason::NAMESPACE_MISSING,
            Self::OutOfReach(error) => error.reason(),
            Self::NotServed { .. } => reason::BACKUP_KIND_NOT_SERVED,
            Self::HasOwner { .. } | Self::Owned { .. } => reason::BACKUP_HAS_OWNER,
            Self::NameTaken { .. } => reason::BACKUP_NAME_TAKEN,
            Self::TooLarge { .. } => reason::BACKUP_TOO_LARGE,
            Self::Exhausted { .. } => reason::BACKUPS_EXHAUSTED,
        }
    }
}

impl Error {
    /// One `PascalCase` word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unusable(problem) => problem.reason(),
            Self::Api(error) => error.reason(),
            Self::NotServed { .. } => reason::KIND_NOT_SERVED,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(error) => error.into(),
            // A version that is served is found without any change.
            Error::NotServed { .. } => Self::transient(error.reason(), error.to_string()),
            Error::Unusable(problem) => Self::stalled(problem.reason(), problem.to_string()),
        }
    }
}

/// Whether the server refused a write on its merits, and not because it was busy or unreachable.
#[must_use]
pub fn is_refusal(error: &ApiError) -> bool {
    match error.cause {
        Cause::Forbidden
        | Cause::QuotaExceeded
        | Cause::QuotaRefused
        | Cause::DefinitionTerminating
        | Cause::NamespaceTerminating
        | Cause::Invalid
        | Cause::UnknownField => true,
        Cause::Failed => (400..500).contains(&error.code),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use operator_watch::Verb;

    use super::*;

    #[test]
    fn only_what_the_server_refuses_for_a_reason_of_its_own_is_a_try() {
        let of = |cause| ApiError::new(Verb::Write, ("Job", "dump"), cause, "");
        let failed = |code| {
            let mut error = of(Cause::Failed);
            error.code = code;
            error
        };
        let refused = [
            Cause::Forbidden,
            Cause::QuotaExceeded,
            Cause::Invalid,
            Cause::UnknownField,
            Cause::QuotaRefused,
            Cause::NamespaceTerminating,
            Cause::DefinitionTerminating,
        ];
        for error in refused.map(of).into_iter().chain([failed(413)]) {
            assert!(is_refusal(&error), "{error}");
        }
        let others = [Cause::Busy, Cause::Conflict, Cause::AlreadyExists, Cause::NotFound, Cause::Unanswered];
        for error in others.map(of).into_iter().chain([failed(503)]) {
            assert!(!is_refusal(&error), "{error}");
        }
    }
}
