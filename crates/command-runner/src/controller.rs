//! A pass over a command:
//!
//! 1. [`Observer`] finds the other commands of its target. If it may be its turn, or it ran, it reads the target live.
//! 2. [`decide`] chooses one step: running it by one patch of its target that proves it, reporting on it, or waiting.
//! 3. [`Executor`] takes it; right before the command runs, [`Observer`] reads it live. The end of a command wakes the next one.

use std::{sync::Arc, time::Duration};

use command_runner::{
    command::Command,
    decide::{Action, decide},
    observed::Observed,
};
use operator_kit::{run::Backoffs, run::Controller, run::Requeue};
use operator_watch::ApiError;

use crate::{act::Executor, memory::Memory, observe::Observer};

/// Longest delay before a failing step is retried, because what refuses it may be fixed unnoticed: with the jitter, less than 15 s.
const MAX_BACKOFF: Duration = Duration::from_secs(12);
/// Time until another try after a live read that showed another command than the cache.
const CATCH_UP_INTERVAL: Duration = Duration::from_secs(1);

/// The controller of commands.
pub struct Commands {
    /// The only reader.
    pub observer: Observer,
    /// The only writer.
    pub executor: Executor,
    /// What both remember.
    pub memory: Memory,
}

impl Controller for Commands {
    type Kind = Command;
    type Observed = Observed;
    type Action = Action;
    type Error = ApiError;

    async fn observe(&self, command: Arc<Command>, backoffs: Backoffs) -> Result<Observed, ApiError> {
        self.observer.observe(command, backoffs).await
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    fn step(&self, action: &Action) -> &'static str {
        action.step()
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Requeue, ApiError> {
        if matches!(action, Action::Run(_)) && !self.observer.still_waits(&observed).await? {
            return Ok(Requeue::Untried(CATCH_UP_INTERVAL));
        }
        self.executor.act(&observed, action).await
    }

    fn longest_backoff(&self) -> Duration {
        MAX_BACKOFF
    }

    fn forget(&self, uid: &str) {
        self.memory.gone(uid);
    }
}
