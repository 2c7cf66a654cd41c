//! The verdict on a command.

/// The verdict on a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is bound.
    pub is_bound: bool,
    /// One `PascalCase` word.
    pub reason: &'static str,
    /// The state, its reason and the remedy.
    pub message: String,
    /// Whether it may pass by itself.
    pub may_pass: bool,
}

impl Verdict {
    pub(crate) fn refused(reason: &'static str, message: String) -> Self {
        Self { is_bound: false, reason, message, may_pass: false }
    }

    pub(crate) fn waiting(reason: &'static str, message: String) -> Self {
        Self { is_bound: false, reason, message, may_pass: true }
    }
}
