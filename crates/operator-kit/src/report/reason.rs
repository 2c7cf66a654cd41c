//! The reasons that the kit itself gives, each one `PascalCase` word.

/// The same write is repeated again and again.
pub const REPEATED_WRITES: &str = "RepeatedWrites";
/// Newer settings have a mistake.
pub const SETTINGS_REFUSED: &str = "SettingsRefused";
/// Newer settings need rights that the controller does not have.
pub const SETTINGS_WAIT_FOR_RIGHTS: &str = "SettingsWaitForRights";
/// A pass took too long.
pub const TIMED_OUT: &str = "TimedOut";

/// All of them.
pub const ALL: &[&str] = &[REPEATED_WRITES, SETTINGS_REFUSED, SETTINGS_WAIT_FOR_RIGHTS, TIMED_OUT];
