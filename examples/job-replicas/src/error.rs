//! An obstacle between a `JobReplicas` and its Jobs.

use operator_kit::{
    report::{Category, Reported},
    watch::ApiError,
};
use thiserror::Error;

/// An obstacle between a `JobReplicas` and its Jobs.
#[derive(Debug, Error)]
pub enum Error {
    /// The API server refused a write.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The Jobs are not known.
    #[error("the Jobs cannot be observed: {problem}")]
    NotObserved {
        /// Why.
        problem: String,
    },
}

impl Reported for Error {
    fn category(&self) -> Category {
        self.wrapped().map_or(Category::Transient, Reported::category)
    }

    fn reason(&self) -> &'static str {
        self.wrapped().map_or("JobsNotObserved", Reported::reason)
    }

    fn wrapped(&self) -> Option<&dyn Reported> {
        if let Self::Api(error) = self { Some(error) } else { None }
    }
}
