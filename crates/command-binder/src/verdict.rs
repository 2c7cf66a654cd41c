//! What is to be said of a command.

/// What is to be said of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is bound.
    pub is_bound: bool,
    /// One `PascalCase` word.
    pub reason: &'static str,
    /// What is so, why, and what to do.
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
