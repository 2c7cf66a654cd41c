//! An obstacle between a `JobReplicas` and its Jobs.

use operator_kit::{report::Reported, write::WriteError};
use thiserror::Error;

/// An obstacle between a `JobReplicas` and its Jobs.
#[derive(Debug, Error)]
pub enum Error {
    /// The API server refused a write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The Jobs are not known.
    #[error("the Jobs cannot be observed: {problem}")]
    NotObserved {
        /// Why.
        problem: String,
    },
}

impl Reported for Error {
    fn reason(&self) -> &'static str {
        self.wrapped().map_or("JobsNotObserved", Reported::reason)
    }

    fn wrapped(&self) -> Option<&dyn Reported> {
        if let Self::Write(error) = self { Some(error) } else { None }
    }
}
