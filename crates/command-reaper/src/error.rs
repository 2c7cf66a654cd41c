//! What can keep a command from being deleted.

use operator_kit::{
    render::ExpressionError,
    report::{Category, Reported},
    write::WriteError,
};
use thiserror::Error;

/// What can keep a command from being deleted.
#[derive(Debug, Error)]
pub enum Error {
    /// It is not known whether it finished, or how long it stays.
    #[error("it cannot be determined when this command expires: {0}")]
    Unreadable(ExpressionError),
    /// The API server did not take a write.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Reported for Error {
    fn category(&self) -> Category {
        match self {
            Self::Unreadable(_) => Category::WaitsForChange,
            Self::Write(error) => error.category(),
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "ExpiryUnknown",
            Self::Write(error) => error.reason(),
        }
    }

    fn wrapped(&self) -> Option<&dyn Reported> {
        match self {
            Self::Write(error) => Some(error),
            Self::Unreadable(_) => None,
        }
    }
}
