//! The memory of commands between passes. All of it may be lost, and is then found or reported again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use command_binder::command::CommandRow;
use operator_kit::report::Told;
use parking_lot::Mutex;

/// The memory of commands that are not bound, or bound by a label, by their uid.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Remembered>>);

#[derive(Default)]
struct Remembered {
    /// The reason that was reported last.
    told: Told,
    /// The label that was found to name the target.
    labels: HashMap<String, Box<str>>,
}

impl Memory {
    /// The time until a reason is to be reported on a command.
    pub fn due_in(&self, uid: &str, reason: &str) -> Duration {
        self.0.lock().told.due_in(uid, reason)
    }

    /// Records a report on a command.
    pub fn note_told(&self, uid: &str, reason: &str) {
        self.0.lock().told.is_due(uid, reason);
    }

    /// Whether the label that a command carries was found to name its target.
    pub fn is_label_checked(&self, uid: &str, row: &CommandRow) -> bool {
        let known = self.0.lock();
        let checked = known.labels.get(uid);
        checked.is_some() && checked == row.bound_to.as_ref()
    }

    /// Records that the label of a command names its target.
    pub fn label_is_right(&self, uid: &str, label: &str) {
        self.0.lock().labels.insert(uid.to_owned(), label.into());
    }

    /// Forgets a command that is gone.
    pub fn forget(&self, uid: &str) {
        let mut remembered = self.0.lock();
        remembered.told.forget(uid);
        remembered.labels.remove(uid);
    }
}
