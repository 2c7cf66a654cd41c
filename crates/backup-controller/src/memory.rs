//! The memory of objects between passes. All of it may be lost: then an object is held longer, and not released sooner.

use std::{collections::HashMap, sync::Arc, time::Duration};

use backup_controller::{annotation::BackupStatus, backup::Failures};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The memory of objects, by their uid.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<HashMap<String, Remembered>>>);

#[derive(Default)]
struct Remembered {
    refusals: u32,
    told: Option<(BackupStatus, Instant)>,
    failures: Option<Failures>,
    is_about_to_create: bool,
    is_unmeasured: bool,
}

impl Memory {
    /// The number of refusals in a row to create a backup of an object.
    pub fn refusals(&self, uid: &str) -> u32 {
        self.0.lock().get(uid).map_or(0, |remembered| remembered.refusals)
    }

    /// Records that the server refused to create a backup of an object.
    pub fn refused(&self, uid: &str) {
        let mut objects = self.0.lock();
        let refusals = &mut objects.entry(uid.to_owned()).or_default().refusals;
        *refusals = refusals.saturating_add(1);
    }

    /// Records that a backup of an object was created.
    pub fn created(&self, uid: &str) {
        if let Some(remembered) = self.0.lock().get_mut(uid) {
            remembered.refusals = 0;
            remembered.is_about_to_create = false;
        }
    }

    /// Records that a backup of an object is about to be created.
    pub fn begins(&self, uid: &str) {
        self.0.lock().entry(uid.to_owned()).or_default().is_about_to_create = true;
    }

    /// Records that a backup of an object may have been created: nobody knows.
    pub fn may_have_created(&self, uid: &str) {
        if let Some(remembered) = self.0.lock().get_mut(uid) {
            remembered.is_about_to_create = false;
        }
    }

    /// Whether the last recorded backup of an object has not been created yet, as this process knows.
    pub fn is_about_to_create(&self, uid: &str) -> bool {
        self.0.lock().get(uid).is_some_and(|remembered| remembered.is_about_to_create)
    }

    /// Records that an object got our finalizer: it is to be found out whether its backup can be stored.
    pub fn protected(&self, uid: &str) {
        self.0.lock().entry(uid.to_owned()).or_default().is_unmeasured = true;
    }

    /// Whether that is still to be found out.
    pub fn is_unmeasured(&self, uid: &str) -> bool {
        self.0.lock().get(uid).is_some_and(|remembered| remembered.is_unmeasured)
    }

    /// The failed attempts by a policy that were seen.
    pub fn failures(&self, uid: &str, policy: &str) -> Failures {
        let objects = self.0.lock();
        let seen = objects.get(uid).and_then(|remembered| remembered.failures.clone());
        seen.filter(|failures| failures.are_by(policy)).unwrap_or_else(|| Failures::none_by(policy))
    }

    /// Records the failed attempts that were seen.
    pub fn note_failures(&self, uid: &str, failures: Failures) {
        if failures.number() > 0 {
            self.0.lock().entry(uid.to_owned()).or_default().failures = Some(failures);
        }
    }

    /// The status that was told last, and the time since then. Only the leader tells, so that it holds even if the object
    /// does not show it, for example because of a policy on annotations.
    pub fn told(&self, uid: &str) -> Option<(BackupStatus, Duration)> {
        let (status, at) = self.0.lock().get(uid)?.told.clone()?;
        Some((status, at.elapsed()))
    }

    /// Records the status that is told now.
    pub fn note_told(&self, uid: &str, status: BackupStatus) {
        self.0.lock().entry(uid.to_owned()).or_default().told = Some((status, Instant::now()));
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_in_a_row_and_by_object() {
        let memory = Memory::default();
        memory.refused("a");
        memory.refused("a");
        memory.refused("b");
        assert_eq!((memory.refusals("a"), memory.refusals("b"), memory.refusals("c")), (2, 1, 0));
        memory.forget("a");
        assert_eq!((memory.refusals("a"), memory.refusals("b")), (0, 1));
    }
}
