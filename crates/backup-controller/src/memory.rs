//! What is remembered of an object between passes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How often in a row the server refused to create a backup, by the uid of the object that it would be of. After a
/// restart it is counted anew: then an object is held longer, and not let go sooner.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Mutex<HashMap<String, u32>>>);

impl Refusals {
    /// How often.
    pub fn of(&self, uid: &str) -> u32 {
        self.lock().get(uid).copied().unwrap_or_default()
    }

    /// Notes one more.
    pub fn note(&self, uid: &str) {
        let mut refusals = self.lock();
        let count = refusals.entry(uid.to_owned()).or_default();
        *count = count.saturating_add(1);
    }

    /// Forgets those of an object that is gone, or of which a backup was created.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
