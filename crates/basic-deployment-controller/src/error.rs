//! The obstacles between a `BasicDeployment` and its child, and their remedies.

use std::time::Duration;

use catena_api::reason;
use operator_kit::report::Failures;
use operator_templates::TemplateError;
use operator_watch::{ApiError, Failure};
use thiserror::Error;

/// Time until a revision that exists is known from its watch.
const WATCH_DELAY: Duration = Duration::from_secs(1);

/// An obstacle between a `BasicDeployment` and its child.
#[derive(Debug, Error)]
pub enum Error {
    /// A decision not to continue.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A request failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The children are not known.
    #[error("the children cannot be observed: {problem}")]
    NotObserved {
        /// Why.
        problem: String,
    },
}

/// A decision not to continue, because the spec cannot be followed, or not yet.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The template renders no child.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The template sets a field that no child gets from it.
    #[error(
        "the template {template:?} sets {field}, which the controller {why}; remove it from the template"
    )]
    FieldNotTaken {
        /// The template.
        template: String,
        /// The field.
        field: String,
        /// What the controller does instead.
        why: &'static str,
    },
    /// The rendered kind is not configured.
    #[error(
        "{by} renders {found}, but children in the controller's settings lists only {listed}; list the kind there, or change the template"
    )]
    KindNotListed {
        /// The template, or the revision.
        by: String,
        /// The rendered kind.
        found: String,
        /// The configured kinds.
        listed: String,
    },
    /// The child would be of the kind whose controller made the `BasicDeployment`.
    #[error(
        "{owner} has this BasicDeployment for a child, and the template {template:?} renders a {kind} again: such a chain has no end; render another kind"
    )]
    Recursion {
        /// The template.
        template: String,
        /// The rendered kind.
        kind: String,
        /// The controller of the `BasicDeployment`.
        owner: String,
    },
    /// The cluster does not serve the kind of the child.
    #[error(
        "the cluster does not serve the kind {kind} of {api_version}, so that the child can neither be seen nor changed; install its CustomResourceDefinition, set served: true for that version, or change the template"
    )]
    KindNotServed {
        /// The API version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The kind of the child is cluster-scoped.
    #[error(
        "the kind {kind} of {api_version} is cluster-scoped, but a child lives in the namespace of its BasicDeployment, so that its kind must be namespaced; change the template, or define the kind with scope: Namespaced"
    )]
    KindNotNamespaced {
        /// The API version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The last child is of a kind that is no longer configured, so that no watch shows it.
    #[error(
        "the last child, {kind} {name:?}, is of a kind that children in the controller's settings no longer lists, so that it is not seen and may still run; list the kind until no child of it is left"
    )]
    FormerKindNotListed {
        /// The kind.
        kind: String,
        /// The child's name.
        name: String,
    },
    /// The revision that a rollback chose no longer exists.
    #[error(
        "the child was rolled back to a revision (hash {hash}) whose ControllerRevision was deleted; it is not changed until the spec or the template gives another rendering"
    )]
    RevisionGone {
        /// The revision's hash.
        hash: String,
    },
    /// The name of a revision is taken.
    #[error(
        "ControllerRevision {name:?} exists, but is not known as a revision of this BasicDeployment: it belongs to somebody else, or somebody removed its label or annotation; restore them ({}), or delete it",
        .restore.join("; ")
    )]
    RevisionNameTaken {
        /// The revision's name.
        name: String,
        /// The commands that restore its label and its annotation.
        restore: [String; 2],
    },
    /// The name of the child is taken.
    #[error("{kind} {name:?} exists {why}")]
    ChildNotOwned {
        /// The child's kind.
        kind: String,
        /// The child's name.
        name: String,
        /// Whose it is, and the remedy.
        why: String,
    },
    /// An output of the child cannot be read.
    #[error(
        "{kind} {name:?} breaks the replica contract: {problem}; correct the contract of this kind under children in the controller's settings, or the child's controller"
    )]
    ContractBroken {
        /// The child's kind.
        kind: String,
        /// The child's name.
        name: String,
        /// The output, and the mistake in it.
        problem: String,
    },
}

impl Refusal {
    /// One `PascalCase` word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Template(error) => error.reason,
            Self::FieldNotTaken { .. } => reason::TEMPLATE_FAILED,
            Self::KindNotListed { .. } | Self::FormerKindNotListed { .. } => reason::KIND_NOT_LISTED,
            Self::KindNotServed { .. } => reason::KIND_NOT_SERVED,
            Self::KindNotNamespaced { .. } => reason::KIND_NOT_NAMESPACED,
            Self::Recursion { .. } => reason::RECURSION,
            Self::RevisionGone { .. } => reason::REVISION_GONE,
            Self::RevisionNameTaken { .. } => reason::REVISION_NAME_TAKEN,
            Self::ContractBroken { .. } => reason::CONTRACT_BROKEN,
            Self::ChildNotOwned { .. } => reason::CHILD_NOT_OWNED,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        // The installation of the kind is no event of the BasicDeployment.
        let is_stalled = !matches!(refusal, Refusal::KindNotServed { .. });
        // A former process may have created the revision, and its watch may be behind.
        let is_expected = matches!(refusal, Refusal::RevisionNameTaken { .. });
        let retry_after = is_expected.then_some(WATCH_DELAY);
        let told = Self::transient(refusal.reason(), refusal.to_string());
        Self { is_stalled, is_expected, retry_after, ..told }
    }
}

impl From<Error> for Failures {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Api(error) => error.into(),
            Error::NotObserved { .. } => Failure::transient(reason::CHILDREN_NOT_OBSERVED, message).into(),
        }
    }
}
