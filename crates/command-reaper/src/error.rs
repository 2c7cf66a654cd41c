//! An obstacle to the deletion of a command.

use operator_kit::{
    render::ExpressionError,
    report::{Category, Reported},
    watch::ApiError,
};
use thiserror::Error;

/// An obstacle to the deletion of a command.
#[derive(Debug, Error)]
pub enum Error {
    /// Its end or its TTL is unknown.
    #[error("it cannot be determined when this command expires: {0}")]
    Unreadable(ExpressionError),
    /// The API server refused a write.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl Reported for Error {
    fn category(&self) -> Category {
        match self {
            Self::Unreadable(_) => Category::WaitsForChange,
            Self::Api(error) => error.category(),
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "ExpiryUnknown",
            Self::Api(error) => error.reason(),
        }
    }

    fn wrapped(&self) -> Option<&dyn Reported> {
        match self {
            Self::Api(error) => Some(error),
            Self::Unreadable(_) => None,
        }
    }
}
