use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use operator_kit::{
    report::Events,
    run::{Attempt, Controller, Next},
    watch::Watched,
    write::Writer,
};

use crate::{
    command::Command,
    decide::{Action, decide},
    error::Error,
    removed::Removed,
};

/// What a decision about a command is made from.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The command.
    pub command: Arc<Watched<Command>>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// When it was observed, on this machine's clock.
    pub now: Timestamp,
    /// Whether it was deleted here, and the cache has yet to show it.
    pub is_deleted: bool,
    /// Whether it was created again soon after it had been deleted here.
    pub came_back: bool,
    /// When people were told that it is kept, by this process.
    pub told: Option<Timestamp>,
}

/// The controller of commands.
pub struct Commands {
    pub(crate) writer: Writer,
    pub(crate) events: Events,
    /// When it was told of a command that it is kept, by its uid.
    told: Mutex<HashMap<String, Timestamp>>,
    removed: Mutex<Removed>,
}

impl Commands {
    pub fn new(writer: Writer, events: Events) -> Self {
        Self { writer, events, told: Mutex::default(), removed: Mutex::default() }
    }

    pub(crate) fn told(&self) -> MutexGuard<'_, HashMap<String, Timestamp>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn removed(&self) -> MutexGuard<'_, Removed> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controller for Commands {
    type Kind = Watched<Command>;
    type Observed = Observed;
    type Action = Action;
    type Error = Error;

    async fn observe(&self, command: Arc<Watched<Command>>, attempt: Attempt) -> Result<Observed, Error> {
        let (uid, now) = (command.metadata.uid.as_deref().unwrap_or_default(), Timestamp::now());
        let told = self.told().get(uid).copied();
        let (is_deleted, came_back) = {
            let removed = self.removed();
            (removed.has(&command), removed.came_back(&command))
        };
        Ok(Observed { command, attempt, now, is_deleted, came_back, told })
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Next, Error> {
        self.act(&observed.command, action).await
    }

    fn forget(&self, uid: &str) {
        self.told().remove(uid);
    }
}
