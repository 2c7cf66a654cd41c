//! An obstacle to binding a command, besides its reference.

use operator_kit::{report::Reported, watch::ReadError, write::WriteError};
use thiserror::Error;

/// An obstacle to binding a command, besides its reference.
#[derive(Debug, Error)]
pub enum Error {
    /// The API server refused a write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The API server did not answer a read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Reported for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Write(error) => error.reason(),
            Self::Read(error) => error.reason(),
        }
    }

    fn wrapped(&self) -> Option<&dyn Reported> {
        match self {
            Self::Write(error) => Some(error),
            Self::Read(error) => Some(error),
        }
    }
}
