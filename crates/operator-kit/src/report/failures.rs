use operator_templates::TemplateError;
use operator_watch::{ApiError, Failure};

/// The failures of a pass: of its step as a whole, or of single items of its batch, which then back off alone. Whatever
/// converts into a [`Failure`] converts into this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// Each of them.
    pub parts: Vec<Failure>,
    /// Whether a part of the step succeeded nevertheless.
    pub has_progressed: bool,
}

impl<E: Into<Failure>> From<E> for Failures {
    fn from(error: E) -> Self {
        Self { parts: vec![error.into()], has_progressed: false }
    }
}

/// The failure of a part of a step: that of a request, whose cause matters, or any other one.
#[derive(Clone, Debug)]
pub enum StepError {
    /// A request failed.
    Api(ApiError),
    /// There is another obstacle.
    Failed(Failure),
}

impl From<ApiError> for StepError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<Failure> for StepError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<TemplateError> for StepError {
    fn from(error: TemplateError) -> Self {
        Failure::stalled(error.reason, error.message).into()
    }
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Api(error) => error.into(),
            StepError::Failed(failure) => failure,
        }
    }
}

/// The same write is repeated again and again.
pub(crate) const REPEATED_WRITES: &str = "RepeatedWrites";
/// Newer settings have a mistake.
pub(crate) const SETTINGS_REFUSED: &str = "SettingsRefused";
/// Newer settings need rights that the controller does not have.
pub(crate) const SETTINGS_WAIT_FOR_RIGHTS: &str = "SettingsWaitForRights";
/// A pass took too long.
pub(crate) const TIMED_OUT: &str = "TimedOut";
