//! The failed attempts that a process has seen itself. A report on an object could be forged, so that it releases nothing.

use std::collections::BTreeSet;

/// The attempts by one policy that were seen to have failed or to have taken too long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    policy: String,
    attempts: BTreeSet<u32>,
}

impl Failures {
    /// None yet by a policy, given as [`ProtectedKind::policy`](crate::settings::ProtectedKind::policy).
    #[must_use]
    pub fn none_by(policy: &str) -> Self {
        Self { policy: policy.to_owned(), attempts: BTreeSet::new() }
    }

    /// Whether they are by this policy.
    #[must_use]
    pub fn are_by(&self, policy: &str) -> bool {
        self.policy == policy
    }

    /// Adds an attempt.
    pub fn add(&mut self, attempt: u32) {
        self.attempts.insert(attempt);
    }

    /// Their number.
    #[must_use]
    pub fn number(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX)
    }

    /// The last of them; 0 for none.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.attempts.last().copied().unwrap_or_default()
    }
}
