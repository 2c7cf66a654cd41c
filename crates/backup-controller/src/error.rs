//! What can keep an object from its backup.

use operator_kit::{
    render::TemplateError,
    report::{Category, Reported},
    watch::ReadError,
    write::{WriteCause, WriteError},
};
use thiserror::Error;

/// What can keep an object from its backup.
#[derive(Debug, Error)]
pub enum Error {
    /// There is nothing to create.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// The API server did not take a write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The backup would go to a namespace that is being deleted.
    #[error(
        "the namespace {namespace:?} is being deleted and accepts no new {kind}; set backups.{backup}.namespace in the controller's values to another one, or release the object without a backup with the \
         annotation catena.dev/force-release: <reason>"
    )]
    NamespaceTerminating {
        /// The backup's name in the settings.
        backup: String,
        /// The backup's kind.
        kind: String,
        /// The namespace.
        namespace: String,
    },
    /// Something was missing when a backup was created.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The API server did not answer a read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why the creation of a backup was answered as of something that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Missing {
    /// There is nowhere to create the backup.
    #[error(
        "{kind} {name:?} cannot be created: either the cluster does not serve this kind, or the namespace {namespace:?} does not exist; install the CustomResourceDefinition, or create the namespace"
    )]
    NotServed {
        /// The backup's kind.
        kind: String,
        /// The backup's name.
        name: String,
        /// The namespace.
        namespace: String,
    },
    /// The version changed in which the cluster serves the backup's kind.
    #[error(
        "{kind} {name:?} could not be created: {tried} is no longer served, but {served} is, and the backup is retried in that version; set backups.{backup}.apiVersion in the controller's values to it"
    )]
    OtherVersion {
        /// The backup's name in the settings.
        backup: String,
        /// The backup's kind.
        kind: String,
        /// The backup's name.
        name: String,
        /// The version that it was to be created in.
        tried: String,
        /// The version that is served.
        served: String,
    },
    /// Nobody could look what it is.
    #[error(transparent)]
    Unclear(ReadError),
}

/// Why there is no backup that could be created or judged, until somebody changes something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unusable {
    /// The template gives no object.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The template's name does not follow from the suffix.
    #[error(
        "the template {backup:?} renders the name {name:?}, which does not contain the suffix, so that two backups would have the same name; write, for example, {{{{ name ~ \"-\" ~ suffix }}}}"
    )]
    NotUnique {
        /// The backup's name in the settings.
        backup: String,
        /// The name that came out.
        name: String,
    },
    /// The template asks for a namespace of its own.
    #[error(
        "the template {backup:?} sets metadata.namespace to {found:?}; remove it, and set backups.{backup}.namespace instead"
    )]
    OtherNamespace {
        /// The backup's name in the settings.
        backup: String,
        /// The namespace that came out.
        found: String,
    },
    /// An object without a namespace is backed up by one that needs one.
    #[error(
        "backups.{backup}.namespace is not set, and the object is cluster-scoped, so that its backup has no namespace; set it"
    )]
    NoNamespace {
        /// The backup's name in the settings.
        backup: String,
    },
    /// Whether there is one cannot be seen.
    #[error(transparent)]
    OutOfReach(ReadError),
    /// The template gives the backup an owner.
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
    /// Something of the name is there that is not the backup.
    #[error(
        "{title} exists, but does not count as the backup of this object: {why}; delete it, or change the name in the template"
    )]
    NameTaken {
        /// What is there.
        title: String,
        /// Why it does not count.
        why: &'static str,
    },
    /// No other try has a number.
    #[error(
        "{tries} backups failed, and no further attempt is made; release the object without a backup with the annotation \
             catena.dev/force-release: <reason>"
    )]
    Exhausted {
        /// How many there were.
        tries: u32,
    },
}

impl Unusable {
    /// One `PascalCase` word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Template(error) => error.reason(),
            Self::NotUnique { .. } => "BackupNameNotUnique",
            Self::OtherNamespace { .. } => "BackupInOtherNamespace",
            Self::NoNamespace { .. } => "BackupWithoutNamespace",
            Self::OutOfReach(error) => error.reason(),
            Self::HasOwner { .. } | Self::Owned { .. } => "BackupHasOwner",
            Self::NameTaken { .. } => "BackupNameTaken",
            Self::Exhausted { .. } => "BackupsExhausted",
        }
    }
}

impl Reported for Error {
    fn category(&self) -> Category {
        match self {
            Self::Unusable(_)
            | Self::NamespaceTerminating { .. }
            | Self::Missing(Missing::NotServed { .. }) => Category::WaitsForChange,
            Self::Missing(Missing::OtherVersion { .. }) => Category::Transient,
            Self::Write(error) => error.category(),
            Self::Missing(Missing::Unclear(error)) | Self::Read(error) => error.category(),
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Unusable(problem) => problem.reason(),
            Self::Write(error) => error.reason(),
            Self::NamespaceTerminating { .. } => "NamespaceTerminating",
            Self::Missing(Missing::NotServed { .. }) => "BackupKindNotServed",
            Self::Missing(Missing::OtherVersion { .. }) => "BackupVersionNotServed",
            Self::Missing(Missing::Unclear(error)) | Self::Read(error) => error.reason(),
        }
    }

    fn wrapped(&self) -> Option<&dyn Reported> {
        match self {
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}

/// Whether the server refused a backup for a reason of its own, and not because it was busy or is not heard. What is not
/// there may be only the version that was asked for: it has to be looked for first.
#[must_use]
pub fn is_refusal(error: &WriteError) -> bool {
    match &error.cause {
        WriteCause::Forbidden { .. }
        | WriteCause::QuotaExceeded { .. }
        | WriteCause::QuotaRefused { .. }
        | WriteCause::DefinitionTerminating
        | WriteCause::NamespaceTerminating
        | WriteCause::Invalid { .. } => true,
        WriteCause::Unknown { code, .. } => (400..500).contains(code),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use operator_kit::object::Named;

    use super::*;

    #[test]
    fn only_what_the_server_refuses_for_a_reason_of_its_own_is_a_try() {
        let message = String::new;
        let of = |cause| WriteError { object: Named::new("Job", "dump"), cause };
        let unknown = |code| WriteCause::Unknown { code, message: message() };
        let refused = [
            WriteCause::Forbidden { message: message() },
            WriteCause::QuotaExceeded { message: message() },
            WriteCause::Invalid { message: message(), fields: Vec::new() },
            WriteCause::QuotaRefused { message: message() },
            WriteCause::NamespaceTerminating,
            WriteCause::DefinitionTerminating,
            unknown(413),
        ];
        for error in refused.map(of) {
            assert!(is_refusal(&error), "{error}");
        }
        let others = [
            WriteCause::Busy { message: message(), retry_after: Duration::ZERO },
            WriteCause::Changed { message: message() },
            WriteCause::AlreadyExists,
            WriteCause::Gone,
            unknown(0),
            unknown(503),
        ];
        for error in others.map(of) {
            assert!(!is_refusal(&error), "{error}");
        }
    }
}
