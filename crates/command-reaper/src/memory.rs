//! The memory of commands between passes. A leader that ends passes its deletions on to the next one; all of it may be
//! lost with the process.

use std::{collections::HashMap, sync::Arc};

use catena_api::keys;
use command_reaper::command::CommandRow;
use jiff::Timestamp;
use operator_kit::{run::Handover, watch::Watched};
use parking_lot::Mutex;

use crate::removed::Removed;

/// The memory of commands.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Remembered>>);

#[derive(Default)]
struct Remembered {
    /// The time of the last report that a command is kept, by its uid.
    told: HashMap<String, Timestamp>,
    removed: Removed,
}

impl Memory {
    /// The time of the last report that a command is kept.
    pub fn told(&self, uid: &str) -> Option<Timestamp> {
        self.0.lock().told.get(uid).copied()
    }

    /// Records a report that a command is kept.
    pub fn note_told(&self, uid: &str, at: Timestamp) {
        self.0.lock().told.insert(uid.to_owned(), at);
    }

    /// Records that the deletion of a command is sent. Returns whether an earlier one may have taken effect without an
    /// answer.
    pub fn send_deletion(&self, command: &Watched<CommandRow>, at: Timestamp) -> bool {
        self.0.lock().removed.send(command, at)
    }

    /// Records that the deletion of a command was refused.
    pub fn withdraw_deletion(&self, command: &Watched<CommandRow>) {
        self.0.lock().removed.withdraw(command);
    }

    /// Records the deletion of a command.
    pub fn remember_deletion(&self, command: &Watched<CommandRow>, at: Timestamp) {
        self.0.lock().removed.remember(command, at);
    }

    /// Records that a command is there.
    pub fn note_seen(&self, command: &Watched<CommandRow>) {
        self.0.lock().removed.see(command);
    }

    /// Whether this very command was deleted; a cache may show it a little longer.
    pub fn is_deleted(&self, command: &Watched<CommandRow>) -> bool {
        self.0.lock().removed.has(command)
    }

    /// Whether a command was created again soon after it had been deleted.
    pub fn came_back(&self, command: &Watched<CommandRow>) -> bool {
        self.0.lock().removed.came_back(command)
    }

    /// Forgets the reports about a command that is gone. Its deletion is remembered from now on, to recognise it if it comes
    /// back.
    pub fn forget(&self, uid: &str, now: Timestamp) {
        let mut remembered = self.0.lock();
        remembered.told.remove(uid);
        remembered.removed.gone(uid, now);
    }
}

impl Handover for Memory {
    fn key(&self) -> &'static str {
        keys::DELETIONS
    }

    fn pass_on(&self) -> Option<String> {
        self.0.lock().removed.as_text(Timestamp::now())
    }

    fn receive(&self, memory: &str) {
        self.0.lock().removed.add(memory);
    }
}
