//! What this process remembers of each object that it reconciles: one record by uid, which is forgotten with the object.

mod backoff;
mod pending;
mod status;

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::{
    report::metrics::Metrics,
    write::{Repeated, UnansweredWrite},
};

pub(crate) use backoff::{Backoff, EVERYTHING, MAX_DELAY, Tried, Version};
pub(crate) use pending::Pending;
use status::LastStatus;

/// The records of all objects.
pub(crate) struct Records {
    objects: Mutex<Objects>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Objects {
    by_uid: HashMap<String, Record>,
    totals: Totals,
}

/// The record of an object.
#[derive(Default)]
pub(crate) struct Record {
    pub backoff: Backoff,
    /// The writes that its caches have yet to show.
    pub pending: Pending,
    /// The writes on its behalf that may have taken effect without an answer.
    pub unanswered: Vec<UnansweredWrite>,
    /// The write on its behalf that was repeated too often since the last pass.
    pub repeated: Option<Repeated>,
    /// `None` until somebody asks for the age of its status, or writes it.
    status: Option<LastStatus>,
}

/// Numbers over all records.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    /// Objects that are backing off.
    pub backing_off: usize,
    /// Failed steps and items of all objects; each is retried by itself.
    pub failed_parts: usize,
    /// Objects on which nobody has reported yet.
    unreported: u32,
}

impl Records {
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { objects: Mutex::default(), metrics }
    }

    /// Reads or changes the record of an object.
    pub fn of<T>(&self, uid: &str, access: impl FnOnce(&mut Record) -> T) -> T {
        let Objects { by_uid, totals } = &mut *self.objects.lock();
        let record = by_uid.entry(uid.to_owned()).or_default();
        let before = record.totals();
        let result = access(record);
        totals.replace(before, record.totals());
        if record.is_empty() {
            by_uid.remove(uid);
        }
        self.metrics.backing_off.set(totals.backing_off as u64);
        result
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.of(uid, |record| *record = Record::default());
    }

    pub fn totals(&self) -> Totals {
        self.objects.lock().totals
    }
}

impl Record {
    fn is_empty(&self) -> bool {
        self.backoff.len() == 0
            && self.pending.is_empty()
            && self.unanswered.is_empty()
            && self.repeated.is_none()
            && self.status.is_none()
    }

    fn totals(&self) -> Totals {
        let failed_parts = self.backoff.len();
        let is_unreported = self.status.as_ref().is_some_and(LastStatus::is_unreported);
        Totals { backing_off: failed_parts.min(1), failed_parts, unreported: is_unreported.into() }
    }
}

impl Totals {
    fn replace(&mut self, before: Self, after: Self) {
        self.backing_off = self.backing_off + after.backing_off - before.backing_off;
        self.failed_parts = self.failed_parts + after.failed_parts - before.failed_parts;
        self.unreported = self.unreported + after.unreported - before.unreported;
    }
}

#[cfg(test)]
mod tests;
