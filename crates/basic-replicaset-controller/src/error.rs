//! An obstacle between a `BasicReplicaSet` and its pods.

use std::time::Duration;

use operator_kit::{
    render::TemplateError,
    report::{Part, Reported},
    watch::ReadError,
    write::{Failed, WriteCause, WriteError},
};
use thiserror::Error;

/// Delay of a retry after the template has just changed: the next pass renders it.
const TEMPLATE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// An obstacle between a `BasicReplicaSet` and its pods.
#[derive(Debug, Error)]
pub enum Error {
    /// The template renders no pod.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The API server refused a write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A pod's name is taken by somebody else's pod.
    #[error(
        "the pod name {name:?} is taken by another pod, so that its slot is skipped; delete that pod, or change the name in the template"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// A pod cannot be deleted.
    #[error("the pod {name:?} cannot be deleted: {message}; remove the obstacle, or delete the pod yourself")]
    DeleteRefused {
        /// The pod.
        name: String,
        /// The server's words.
        message: String,
    },
    /// The template changed after the decision on the revision of the pods.
    #[error("the template has just changed")]
    TemplateChanged,
    /// A part of a batch failed.
    #[error(transparent)]
    Some(#[from] Box<Failed<Self>>),
    /// The pods are not known.
    #[error("the pods cannot be observed: {problem}")]
    NotObserved {
        /// Why.
        problem: String,
    },
    /// The API server did not answer a read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The reason of a deletion that is refused, and not merely failed.
pub const DELETE_REFUSED: &str = "DeleteRefused";

impl Error {
    /// Whether a pod could not be created only because of its name.
    #[must_use]
    pub fn is_for_its_name(&self) -> bool {
        match self {
            Self::Write(error) => matches!(
                error.cause,
                WriteCause::AlreadyExists | WriteCause::Gone | WriteCause::Changed { .. }
            ),
            _ => matches!(self, Self::NameTaken { .. }),
        }
    }

    /// Whether a pod could not be changed or deleted for a reason that may concern it alone.
    #[must_use]
    pub fn is_for_its_pod(&self) -> bool {
        match self {
            Self::Write(error) => error.cause.may_concern_one_object(),
            _ => matches!(self, Self::DeleteRefused { .. }),
        }
    }
}

impl Reported for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::NameTaken { .. } => "PodNameTaken",
            Self::DeleteRefused { .. } => DELETE_REFUSED,
            Self::TemplateChanged => "TemplateChanged",
            _ => self.wrapped().map_or("PodsNotObserved", Reported::reason),
        }
    }

    fn wrapped(&self) -> Option<&dyn Reported> {
        match self {
            Self::Template(error) => Some(error),
            Self::Write(error) => Some(error),
            Self::Read(error) => Some(error),
            Self::Some(failed) => Some(&failed.first),
            _ => None,
        }
    }

    fn is_expected(&self) -> bool {
        matches!(self, Self::TemplateChanged) || self.wrapped().is_some_and(Reported::is_expected)
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TemplateChanged => Some(TEMPLATE_RETRY_DELAY),
            _ => self.wrapped().and_then(Reported::retry_after),
        }
    }

    fn parts(&self) -> Vec<Part> {
        match self {
            Self::Some(failed) => failed.parts.clone(),
            _ => vec![Part::whole(self)],
        }
    }

    fn has_progressed(&self) -> bool {
        matches!(self, Self::Some(failed) if failed.has_progressed)
    }
}
