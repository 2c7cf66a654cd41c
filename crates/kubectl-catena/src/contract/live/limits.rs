//! How long a requirement may take.

use std::{collections::BTreeMap, time::Duration};

use super::requirement::Requirement;

/// The time limits of the trials.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Of a requirement without a limit of its own.
    pub each: Duration,
    /// Of some requirements.
    pub own: BTreeMap<Requirement, Duration>,
    /// The time for which something must not happen: a write in the steady state, readiness with the bad template.
    pub window: Duration,
}

impl Limits {
    /// The limit of a requirement.
    pub fn of(&self, requirement: Requirement) -> Duration {
        self.own.get(&requirement).copied().unwrap_or(self.each)
    }
}
