use operator_kit::{Category, Reported, WriteError};
use thiserror::Error;

/// What can keep a command from being bound, besides what it refers to.
#[derive(Debug, Error)]
pub enum Error {
    /// The API server did not take a write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What is looked up may not be read.
    #[error(
        "{name:?} may not be read: {message}; grant get, list and watch on its kind to the controller's ServiceAccount"
    )]
    Forbidden {
        /// What was looked up.
        name: String,
        /// The server's words.
        message: String,
    },
    /// The API server did not answer a read.
    #[error("cannot look up {name:?}: {source}; trying again")]
    LookUp {
        /// What was looked up.
        name: String,
        /// Why.
        source: Box<kube::Error>,
    },
}

impl Error {
    pub fn look_up(name: &str, source: kube::Error) -> Self {
        let name = name.to_owned();
        match source {
            kube::Error::Api(status) if status.code == 403 => {
                Self::Forbidden { name, message: status.message.clone() }
            }
            source => Self::LookUp { name, source: Box::new(source) },
        }
    }
}

impl Reported for Error {
    fn category(&self) -> Category {
        match self {
            Self::Write(error) => error.category(),
            Self::Forbidden { .. } => Category::WaitsForChange,
            Self::LookUp { .. } => Category::Transient,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Write(error) => error.reason(),
            Self::Forbidden { .. } => "Forbidden",
            Self::LookUp { .. } => "LookUpFailed",
        }
    }

    fn write_error(&self) -> Option<&WriteError> {
        match self {
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}
