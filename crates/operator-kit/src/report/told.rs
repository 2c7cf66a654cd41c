//! The warnings that were told, and when.

use std::collections::HashMap;

use tokio::time::Instant;

use super::tell_again_after;

/// The last warning about each of several subjects. While it persists, it is told again before its Event expires.
#[derive(Default)]
pub struct Told(HashMap<String, (String, Instant)>);

impl Told {
    /// Whether a warning is to be told now: it is new, or its Event expires soon. It then counts as told.
    pub fn is_due(&mut self, subject: &str, warning: &str) -> bool {
        let is_known = self
            .0
            .get(subject)
            .is_some_and(|(told, at)| told == warning && at.elapsed() < tell_again_after(subject));
        if !is_known {
            self.0.insert(subject.to_owned(), (warning.to_owned(), Instant::now()));
        }
        !is_known
    }

    /// Forgets a subject about which there is nothing to warn of.
    pub fn forget(&mut self, subject: &str) {
        self.0.remove(subject);
    }

    /// Forgets all other subjects.
    pub fn retain(&mut self, stays: impl Fn(&str) -> bool) {
        self.0.retain(|subject, _| stays(subject));
    }

    /// Forgets all subjects.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
