//! Memory and caches → Observed. The only reader: all its input came with the watches.

use std::sync::Arc;

use command_reaper::{command::CommandRow, observed::Observed};
use jiff::Timestamp;
use operator_kit::run::Backoffs;
use operator_watch::DynamicRow;

use crate::memory::Memory;

/// Reads the state of a command.
pub struct Observer {
    /// What this process knows about it.
    pub memory: Memory,
}

impl Observer {
    /// Reads the state of a command.
    pub fn observe(&self, command: Arc<DynamicRow<CommandRow>>, backoffs: Backoffs) -> Observed {
        let (is_deleted, came_back) = (self.memory.is_deleted(&command), self.memory.came_back(&command));
        Observed { command, backoffs, now: Timestamp::now(), is_deleted, came_back }
    }

    /// Forgets a command that is gone.
    pub fn forget(&self, uid: &str) {
        self.memory.forget(uid, Timestamp::now());
    }
}
