//! The last answer to a write on behalf of each object: work that still gets answers is slow, and does not hang.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The times of the last answers for the objects that somebody waits for, by uid.
#[derive(Default)]
pub(super) struct Answers(Mutex<HashMap<String, Option<Instant>>>);

/// Waits for the answers for one object.
pub(crate) struct Awaited<'a> {
    answers: &'a Answers,
    whose: &'a str,
}

impl Answers {
    pub fn awaited<'a>(&'a self, whose: &'a str) -> Awaited<'a> {
        self.0.lock().insert(whose.to_owned(), None);
        Awaited { answers: self, whose }
    }

    pub fn note(&self, whose: &str) {
        if let Some(last) = self.0.lock().get_mut(whose) {
            *last = Some(Instant::now());
        }
    }
}

impl Awaited<'_> {
    /// The time of the last answer since this began.
    pub fn last(&self) -> Option<Instant> {
        self.answers.0.lock().get(self.whose).copied().flatten()
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.answers.0.lock().remove(self.whose);
    }
}
