use operator_watch::Failure;

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

/// The same write is repeated again and again.
pub(crate) const REPEATED_WRITES: &str = "RepeatedWrites";
/// Newer settings have a mistake.
pub(crate) const SETTINGS_REFUSED: &str = "SettingsRefused";
/// Newer settings need rights that the controller does not have.
pub(crate) const SETTINGS_WAIT_FOR_RIGHTS: &str = "SettingsWaitForRights";
/// A pass took too long.
pub(crate) const TIMED_OUT: &str = "TimedOut";
