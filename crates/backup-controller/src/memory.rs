//! The memory of objects between passes. All of it may be lost: then an object is held longer, and not released sooner.

use std::{collections::HashMap, sync::Arc, time::Duration};

use backup_controller::{
    annotation::BackupStatus,
    backup::Failures,
    settings::{OnFailure, ProtectedKind},
};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The memory of objects, by their uid.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<HashMap<String, Remembered>>>);

#[derive(Default)]
struct Remembered {
    refusals: u32,
    /// The policy whose backups were refused, and the reaction to that.
    refused: (String, OnFailure),
    told: Option<(BackupStatus, Instant)>,
    failures: Option<Failures>,
    is_about_to_create: bool,
    is_unmeasured: bool,
}

impl Memory {
    /// The number of refusals in a row to create a backup of an object by this policy and `onFailure`: others were not tried.
    pub fn refusals(&self, uid: &str, kind: &ProtectedKind) -> u32 {
        let objects = self.0.lock();
        let of_kind = |remembered: &&Remembered| remembered.refused == (kind.policy.clone(), kind.on_failure);
        objects.get(uid).filter(of_kind).map_or(0, |remembered| remembered.refusals)
    }

    /// Records that the server refused to create such a backup.
    pub fn refused(&self, uid: &str, kind: &ProtectedKind) {
        let refusals = self.refusals(uid, kind).saturating_add(1);
        let mut objects = self.0.lock();
        let remembered = objects.entry(uid.to_owned()).or_default();
        remembered.refusals = refusals;
        remembered.refused = (kind.policy.clone(), kind.on_failure);
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
    use serde_json::json;

    use super::*;
    use crate::fixtures::{TEMPLATE, with_policy};

    #[test]
    fn refusals_are_counted_in_a_row_by_object_and_by_what_was_refused() {
        let memory = Memory::default();
        let kind = |namespace: &str, policy| with_policy(TEMPLATE, namespace, &policy).kinds["maps"].clone();
        let old = kind("missing", json!({}));
        memory.refused("a", &old);
        memory.refused("a", &old);
        memory.refused("b", &old);
        let refusals = ["a", "b", "c"].map(|uid| memory.refusals(uid, &old));
        assert_eq!(refusals, [2, 1, 0]);
        for new in [kind("backups", json!({})), kind("missing", json!({"onFailure": "Release"}))] {
            assert_eq!(memory.refusals("a", &new), 0, "it was not tried");
            memory.refused("b", &new);
            assert_eq!(memory.refusals("b", &new), 1);
        }
        memory.forget("a");
        assert_eq!(memory.refusals("a", &old), 0);
    }
}
