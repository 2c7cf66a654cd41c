//! An obstacle between an object and its backup.

use operator_kit::{
    render::TemplateError,
    report::{Category, Reported},
    watch::ReadError,
    write::{WriteCause, WriteError},
};
use thiserror::Error;

/// An obstacle between an object and its backup.
#[derive(Debug, Error)]
pub enum Error {
    /// There is nothing to create.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// The API server refused a write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The cluster has stopped serving the kind of the object itself: its API version, its kind and its name.
    #[error(
        "{1} {2:?} cannot be read, because {0} is no longer served; it stays held until a version is served: set served: true for one in the CustomResourceDefinition"
    )]
    NotServed(String, String, String),
    /// The API server did not answer a read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The reason why no backup can be created or judged until somebody changes something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unusable {
    /// The template renders no object.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The template with this name renders this other name, which does not follow from the suffix.
    #[error(
        "the template {0:?} renders the name {1:?}, which does not contain the suffix, so that two backups would have the same name; write, for example, {{{{ name ~ \"-\" ~ suffix }}}}"
    )]
    NotUnique(String, String),
    /// The template with this name sets this namespace of its own.
    #[error(
        "the template {0:?} sets metadata.namespace to {1:?}; remove it, and set backups.{0}.namespace instead"
    )]
    OtherNamespace(String, String),
    /// The object is cluster-scoped, and the backup with this name in the settings needs a namespace.
    #[error(
        "backups.{0}.namespace is not set, and the object is cluster-scoped, so that its backup has no namespace; set it"
    )]
    NoNamespace(String),
    /// The look-up of the backup failed.
    #[error(transparent)]
    OutOfReach(ReadError),
    /// Of the backup with this name in the settings, the cluster does not serve this API version and kind.
    #[error(
        "the cluster does not serve {2} in {1}; set backups.{0}.apiVersion in the controller's values to a served version, or install the CustomResourceDefinition"
    )]
    NotServed(String, String, String),
    /// The template with this name sets an owner on its backup.
    #[error(
        "the template {0:?} sets metadata.ownerReferences, so that the backup would be deleted with its owner; remove that field"
    )]
    HasOwner(String),
    /// Somebody made the object the owner of this backup.
    #[error(
        "{0} is owned by the object and would be deleted with it, so that it proves nothing; remove the owner reference, and find out who sets it"
    )]
    Owned(String),
    /// This object has the name of the backup, and does not count as it for this reason.
    #[error(
        "{0} exists, but does not count as the backup of this object: {1}; delete it, or change the name in the template"
    )]
    NameTaken(String, &'static str),
    /// The backup with this name in the settings, of this kind, would go to this namespace, which is being deleted.
    #[error(
        "the namespace {2:?} is being deleted and accepts no new {1}; set backups.{0}.namespace in the controller's values to another one, or release the object without a backup with the \
         annotation catena.dev/force-release: <uid> <reason>"
    )]
    NamespaceTerminating(String, String, String),
    /// The backup with this name in the settings, of this kind, would go to this namespace, which does not exist.
    #[error(
        "no {1} can be created in the namespace {2:?}, which was not found; create the namespace, or set backups.{0}.namespace in the controller's values to another one"
    )]
    NamespaceMissing(String, String, String),
    /// All attempt numbers are used up.
    #[error(
        "{0} backups failed, and no further attempt is made; release the object without a backup with the annotation \
             catena.dev/force-release: <uid> <reason>"
    )]
    Exhausted(u32),
}

impl Unusable {
    /// One `PascalCase` word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Template(error) => error.reason(),
            Self::NotUnique(..) => "BackupNameNotUnique",
            Self::OtherNamespace(..) => "BackupInOtherNamespace",
            Self::NoNamespace(_) => "BackupWithoutNamespace",
            Self::OutOfReach(error) => error.reason(),
            Self::NotServed(..) => "BackupKindNotServed",
            Self::HasOwner(_) | Self::Owned(_) => "BackupHasOwner",
            Self::NameTaken(..) => "BackupNameTaken",
            Self::NamespaceTerminating(..) => "NamespaceTerminating",
            Self::NamespaceMissing(..) => "NamespaceMissing",
            Self::Exhausted(_) => "BackupsExhausted",
        }
    }
}

impl Reported for Error {
    fn category(&self) -> Category {
        match self {
            Self::Unusable(_) => Category::WaitsForChange,
            // A version that is served is found without any change.
            Self::NotServed(..) => Category::Transient,
            Self::Write(error) => error.category(),
            Self::Read(error) => error.category(),
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Unusable(problem) => problem.reason(),
            Self::Write(error) => error.reason(),
            Self::NotServed(..) => "KindNotServed",
            Self::Read(error) => error.reason(),
        }
    }

    fn wrapped(&self) -> Option<&dyn Reported> {
        match self {
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}

/// Whether the server refused a write on its merits, and not because it was busy or unreachable.
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
