//! Memory and caches → Observed. The only reader: all its input came with the watches.

use std::sync::Arc;

use command_reaper::{command::CommandRow, observed::Observed};
use jiff::Timestamp;
use operator_kit::{object::ObjectId, run::Attempt, watch::Watched};

use crate::memory::Memory;

/// Reads the state of a command.
pub struct Observer {
    memory: Memory,
}

impl Observer {
    pub fn new(memory: Memory) -> Self {
        Self { memory }
    }

    /// Reads the state of a command.
    pub fn observe(&self, command: Arc<Watched<CommandRow>>, attempt: Attempt) -> Observed {
        self.memory.note_seen(&command);
        let (is_deleted, came_back) = (self.memory.is_deleted(&command), self.memory.came_back(&command));
        let told = self.memory.told(ObjectId::of(&*command).uid);
        Observed { command, attempt, now: Timestamp::now(), is_deleted, came_back, told }
    }

    /// Forgets a command that is gone.
    pub fn forget(&self, uid: &str) {
        self.memory.forget(uid, Timestamp::now());
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use operator_kit::run::Handover;

    use super::*;
    use crate::fixtures::command;

    /// The next leader has only the record, which says the same of a command that is gone.
    #[test]
    fn the_deletion_of_a_command_that_is_seen_is_passed_on_however_long_ago_it_was() {
        let (memory, command) = (Memory::default(), Arc::new(command()));
        let observer = Observer::new(memory.clone());
        let long_ago = Timestamp::now() - SignedDuration::from_hours(2);
        memory.remember_deletion(&command, long_ago);
        memory.forget("task", long_ago);
        assert_eq!(memory.pass_on(), None);

        assert!(observer.observe(command, Attempt::Allowed).is_deleted);
        assert!(memory.pass_on().is_some());
        observer.forget("task");
        assert!(memory.pass_on().is_some(), "its hour has only begun");
    }
}
