//! The reasons of reports about a pause.

/// A rendering waits for the end of the pause.
pub const PAUSED: &str = "Paused";

/// Somebody changed the child, which is not undone before the end of the pause.
pub const CHANGED_WHILE_PAUSED: &str = "ChangedWhilePaused";

/// What a pause means for the child.
#[must_use]
pub fn note(has_child: bool) -> &'static str {
    if has_child {
        "spec.paused is true, so that nothing but the replicas of the child is changed"
    } else {
        "spec.paused is true, so that no child is created"
    }
}

/// Whether a reason is one of them.
#[must_use]
pub fn is_reason(reason: &str) -> bool {
    matches!(reason, PAUSED | CHANGED_WHILE_PAUSED)
}
