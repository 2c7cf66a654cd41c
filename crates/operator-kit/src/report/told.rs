//! The warnings that were told, when, and when they are repeated.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use tokio::time::Instant;

/// Minimum time before an Event is repeated: the API server deletes Events after an hour.
const REPEAT_INTERVAL: Duration = Duration::from_secs(30 * 60);
/// Maximum additional delay, constant for each object, so that objects which began together spread out.
const REPEAT_SPREAD: Duration = Duration::from_secs(20 * 60);

/// The last warning about each of several subjects. While it persists, it is told again before its Event expires.
#[derive(Default)]
pub struct Told(HashMap<String, (String, Instant)>);

impl Told {
    /// The time until a warning is to be told: none if it is new, or its Event expires soon.
    #[must_use]
    pub fn due_in(&self, subject: &str, warning: &str) -> Duration {
        let last = self.0.get(subject).filter(|(told, _)| told == warning);
        last.map_or(Duration::ZERO, |(_, at)| tell_again_after(subject).saturating_sub(at.elapsed()))
    }

    /// Whether a warning is to be told now. It then counts as told.
    pub fn is_due(&mut self, subject: &str, warning: &str) -> bool {
        let is_due = self.due_in(subject, warning).is_zero();
        if is_due {
            self.0.insert(subject.to_owned(), (warning.to_owned(), Instant::now()));
        }
        is_due
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

/// The time after which an Event about an object is repeated while its reason persists.
#[must_use]
pub fn tell_again_after(uid: &str) -> Duration {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    REPEAT_INTERVAL + REPEAT_SPREAD * u32::from(hasher.finish().to_be_bytes()[0]) / 256
}
