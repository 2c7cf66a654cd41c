//! An obstacle between a `BasicReplicaSet` and its pods.

use std::time::Duration;

use catena_api::reason;
use operator_templates::TemplateError;
use operator_watch::{ApiError, Cause, Failure};
use thiserror::Error;

/// Delay of a retry after the template has just changed: the next pass renders it.
const TEMPLATE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// An obstacle between a `BasicReplicaSet` and its pods.
#[derive(Debug, Error)]
pub enum Error {
    /// The template renders no pod.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A request failed.
    #[error(transparent)]
    Api(#[from] ApiError),
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
    /// The pods are not known.
    #[error("the pods cannot be observed: {problem}")]
    NotObserved {
        /// Why.
        problem: String,
    },
}

impl Error {
    /// Whether a pod could not be created only because of its name.
    #[must_use]
    pub fn is_for_its_name(&self) -> bool {
        match self {
            Self::Api(error) => error.cause == Cause::AlreadyExists || error.is_stale(),
            _ => matches!(self, Self::NameTaken { .. }),
        }
    }

    /// Whether a pod could not be changed or deleted for a reason that may concern it alone.
    #[must_use]
    pub fn is_for_its_pod(&self) -> bool {
        match self {
            Self::Api(error) => error.concerns_one_object(),
            _ => matches!(self, Self::DeleteRefused { .. }),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Template(error) => Self::stalled(error.reason, error.message),
            Error::Api(error) => error.into(),
            Error::NameTaken { .. } => Self::transient(reason::POD_NAME_TAKEN, message),
            Error::DeleteRefused { .. } => Self::transient(reason::DELETE_REFUSED, message),
            Error::NotObserved { .. } => Self::transient(reason::PODS_NOT_OBSERVED, message),
            Error::TemplateChanged => Self {
                is_expected: true,
                retry_after: Some(TEMPLATE_RETRY_DELAY),
                ..Self::transient(reason::TEMPLATE_CHANGED, message)
            },
        }
    }
}
