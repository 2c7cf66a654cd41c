//! The reasons of reports about a pause.

/// A rendering waits for the end of the pause.
pub const PAUSED: &str = "Paused";

/// Somebody changed the child, which is not undone before the end of the pause.
pub const CHANGED_WHILE_PAUSED: &str = "ChangedWhilePaused";

/// Whether a reason is one of them.
#[must_use]
pub fn is_reason(reason: &str) -> bool {
    matches!(reason, PAUSED | CHANGED_WHILE_PAUSED)
}
