use operator_kit::{Category, ReadError, Reported, TemplateError, WriteError};
use thiserror::Error;

/// What can keep a `BasicReplicaSet` from its pods.
#[derive(Debug, Error)]
pub enum Error {
    /// The template gives no pod.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The API server did not take a write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A pod's name is taken by somebody else's pod.
    #[error(
        "the pod name {name:?} is taken by a pod of somebody else; delete that pod, or change the name in the template"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
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

impl Reported for Error {
    fn category(&self) -> Category {
        match self {
            Self::Template(error) => error.category(),
            Self::Write(error) => error.category(),
            Self::Read(error) => error.category(),
            Self::NameTaken { .. } | Self::NotObserved { .. } => Category::Transient,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Template(error) => error.reason(),
            Self::Write(error) => error.reason(),
            Self::NameTaken { .. } => "PodNameTaken",
            Self::NotObserved { .. } => "PodsNotObserved",
            Self::Read(error) => error.reason(),
        }
    }

    fn write_error(&self) -> Option<&WriteError> {
        match self {
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}
