//! The memory of commands between passes. All of it may be lost, and is then found or reported again.

use std::{collections::HashMap, sync::Arc};

use command_binder::{command::CommandRow, observed::Told};
use parking_lot::Mutex;

/// The memory of commands that are not bound, or bound by a label, by their uid.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<HashMap<String, Remembered>>>);

#[derive(Default)]
struct Remembered {
    told: Option<Told>,
    /// The label that was found to name the target.
    label: Option<Box<str>>,
}

impl Memory {
    /// The last report on a command.
    pub fn told(&self, uid: &str) -> Option<Told> {
        self.0.lock().get(uid)?.told
    }

    /// Records a report on a command.
    pub fn note_told(&self, uid: &str, told: Told) {
        self.0.lock().entry(uid.to_owned()).or_default().told = Some(told);
    }

    /// Whether the label that a command carries was found to name its target.
    pub fn is_label_checked(&self, uid: &str, row: &CommandRow) -> bool {
        let known = self.0.lock();
        let checked = known.get(uid).and_then(|remembered| remembered.label.as_ref());
        checked.is_some() && checked == row.bound_to.as_ref()
    }

    /// Records that the label of a command names its target.
    pub fn label_is_right(&self, uid: &str, label: &str) {
        self.0.lock().entry(uid.to_owned()).or_default().label = Some(label.into());
    }

    /// Forgets a command that is gone.
    pub fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}
