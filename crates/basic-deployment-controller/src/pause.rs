//! Reports about a pause.

/// A rendering waits for the end of the pause.
pub const PAUSED: &str = "Paused";

/// What a pause means for the child.
#[must_use]
pub fn note(has_child: bool) -> &'static str {
    if has_child {
        "spec.paused is true, so that nothing but the replicas of the child is changed"
    } else {
        "spec.paused is true, so that no child is created"
    }
}
