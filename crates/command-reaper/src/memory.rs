//! The memory of commands between passes. All of it is lost with the process.

use std::{collections::HashMap, sync::Arc};

use command_reaper::{
    command::CommandRow,
    decide::notice::{REMEMBERED, REMEMBERED_FOR},
};
use jiff::Timestamp;
use kube::core::ApiResource;
use operator_watch::{DynamicRow, ObjectId};
use parking_lot::Mutex;

/// The last deletion of a command of each kind, namespace and name.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<HashMap<String, Deletion>>>);

/// A deletion that took effect, or may have.
pub struct Deletion {
    uid: String,
    /// The digest of the spec.
    spec: u64,
    /// The time at which the command was gone; before that, the time of the deletion.
    at: Timestamp,
    /// Whether it certainly took effect.
    is_answered: bool,
}

impl Memory {
    /// Records that the deletion of a command is sent: it may take effect although its answer is lost. Returns the
    /// deletion that was remembered for this name before.
    pub fn send_deletion(&self, command: &DynamicRow<CommandRow>, at: Timestamp) -> Option<Deletion> {
        let (name, uid) = (full_name(command), ObjectId::of(command).uid.to_owned());
        let deletion = Deletion { uid, spec: command.row.spec, at, is_answered: false };
        let mut deletions = self.0.lock();
        let before = deletions.insert(name, deletion);
        if deletions.len() > REMEMBERED {
            let oldest = deletions.iter().min_by_key(|(_, deletion)| deletion.at);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                deletions.remove(&oldest);
            }
        }
        before
    }

    /// Records that the sent deletion of a command took effect.
    pub fn confirm_deletion(&self, command: &DynamicRow<CommandRow>) {
        if let Some(deletion) = self.0.lock().get_mut(&full_name(command)) {
            deletion.is_answered = true;
        }
    }

    /// Takes back that the deletion of a command was sent, because it was refused.
    pub fn withdraw_deletion(&self, command: &DynamicRow<CommandRow>, before: Option<Deletion>) {
        let (name, mut deletions) = (full_name(command), self.0.lock());
        match before {
            Some(before) => drop(deletions.insert(name, before)),
            None => drop(deletions.remove(&name)),
        }
    }

    /// Whether this very command was deleted; a cache may show it a little longer.
    pub fn is_deleted(&self, command: &DynamicRow<CommandRow>) -> bool {
        let deletions = self.0.lock();
        let deletion = deletions.get(&full_name(command));
        deletion.is_some_and(|deletion| deletion.is_answered && deletion.uid == ObjectId::of(command).uid)
    }

    /// Whether a command was created again, with the same name and spec, soon after it had been deleted.
    pub fn came_back(&self, command: &DynamicRow<CommandRow>) -> bool {
        let Some(created) = &command.metadata.creation_timestamp else { return false };
        self.0.lock().get(&full_name(command)).is_some_and(|Deletion { uid, spec, at, .. }| {
            let is_same = uid != ObjectId::of(command).uid && *spec == command.row.spec;
            is_same && created.0.duration_since(*at) < REMEMBERED_FOR
        })
    }

    /// Starts the hour of the deletion of a command that is gone: nothing can create it again before.
    pub fn forget(&self, uid: &str, now: Timestamp) {
        for deletion in self.0.lock().values_mut().filter(|deletion| deletion.uid == uid) {
            deletion.at = now;
        }
    }
}

/// Kind, namespace and name. An entry of the settings may get another name, and a kind may be read in another version.
fn full_name(command: &DynamicRow<CommandRow>) -> String {
    let ApiResource { group, plural, .. } = command.resource();
    let ObjectId { namespace, name, .. } = ObjectId::of(command);
    // A slash is in none of them.
    [group, plural, namespace, name].join("/")
}

#[cfg(test)]
mod tests;
