//! An obstacle to the deletion of a command.

use operator_kit::{render::ExpressionError, report::Reported, write::WriteError};
use thiserror::Error;

/// An obstacle to the deletion of a command.
#[derive(Debug, Error)]
pub enum Error {
    /// Its end or its TTL is unknown.
    #[error("it cannot be determined when this command expires: {0}")]
    Unreadable(ExpressionError),
    /// The API server refused a write.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Reported for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "ExpiryUnknown",
            Self::Write(error) => error.reason(),
        }
    }

    fn wrapped(&self) -> Option<&dyn Reported> {
        match self {
            Self::Write(error) => Some(error),
            Self::Unreadable(error) => Some(error),
        }
    }
}
