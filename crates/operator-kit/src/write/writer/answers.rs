//! The last answer to a write on behalf of each object: work that still gets answers is slow, and does not hang.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The times of the answers, by the object's uid.
#[derive(Default)]
pub(super) struct Answers(Mutex<HashMap<String, Instant>>);

impl Answers {
    pub fn note(&self, whose: &str) {
        self.0.lock().insert(whose.to_owned(), Instant::now());
    }

    /// The time of the last answer since the last question.
    pub fn take(&self, whose: &str) -> Option<Instant> {
        self.0.lock().remove(whose)
    }
}
