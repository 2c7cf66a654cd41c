//! The reasons that the kit itself gives, each one `PascalCase` word.

use super::Failures;

/// The same write is repeated again and again.
pub(crate) const REPEATED_WRITES: &str = "RepeatedWrites";
/// Newer settings have a mistake.
pub(crate) const SETTINGS_REFUSED: &str = "SettingsRefused";
/// Newer settings need rights that the controller does not have.
pub(crate) const SETTINGS_WAIT_FOR_RIGHTS: &str = "SettingsWaitForRights";
/// A pass took too long.
pub(crate) const TIMED_OUT: &str = "TimedOut";

impl Failures {
    /// All reasons of the kit's own.
    pub const REASONS: &[&str] = &[REPEATED_WRITES, SETTINGS_REFUSED, SETTINGS_WAIT_FOR_RIGHTS, TIMED_OUT];
}
