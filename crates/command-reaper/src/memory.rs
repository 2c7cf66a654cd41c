//! What is remembered of commands between passes. All of it may be lost with the process.

use std::{collections::HashMap, sync::Arc};

use command_reaper::command::CommandRow;
use jiff::Timestamp;
use operator_kit::watch::Watched;
use parking_lot::Mutex;

use crate::removed::Removed;

/// What is remembered of commands.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Remembered>>);

#[derive(Default)]
struct Remembered {
    /// When people were told that a command is kept, by its uid.
    told: HashMap<String, Timestamp>,
    removed: Removed,
}

impl Memory {
    /// When people were told that a command is kept.
    pub fn told(&self, uid: &str) -> Option<Timestamp> {
        self.0.lock().told.get(uid).copied()
    }

    /// People were told that a command is kept.
    pub fn tell(&self, uid: &str, at: Timestamp) {
        self.0.lock().told.insert(uid.to_owned(), at);
    }

    /// A command was deleted.
    pub fn remember_deletion(&self, command: &Watched<CommandRow>, at: Timestamp) {
        self.0.lock().removed.remember(command, at);
    }

    /// Whether this very command was deleted; a cache may show it a little longer.
    pub fn is_deleted(&self, command: &Watched<CommandRow>) -> bool {
        self.0.lock().removed.has(command)
    }

    /// Whether a command was created again soon after it had been deleted.
    pub fn came_back(&self, command: &Watched<CommandRow>) -> bool {
        self.0.lock().removed.came_back(command)
    }

    /// Forgets what was told of a command that is gone. That it was deleted is remembered, to know what comes back.
    pub fn forget(&self, uid: &str) {
        self.0.lock().told.remove(uid);
    }
}
