//! A pass over a command:
//!
//! 1. [`Observer`] finds the other commands of its target. If it may be its turn, or it ran, it reads the target live, and the
//!    command itself right before it runs.
//! 2. [`decide`] chooses one step: running it by one patch of its target that proves it, reporting on it, or waiting.
//! 3. [`Executor`] takes it. The end of a command wakes the next one.

use std::{sync::Arc, time::Duration};

use command_runner::{
    command::Command,
    decide::{Action, decide},
    observed::Observed,
};
use operator_kit::{run::Backoffs, run::Controller, run::Next};
use operator_watch::ApiError;

use crate::{act::Executor, memory::Memory, observe::Observer};

/// Longest delay before a failing step is retried, because what refuses it may be fixed unnoticed; with the jitter, a minute.
const MAX_BACKOFF: Duration = Duration::from_secs(50);

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

    async fn act(&self, observed: Observed, action: Action) -> Result<Next, ApiError> {
        self.executor.act(&observed, action).await
    }

    fn longest_backoff(&self) -> Duration {
        MAX_BACKOFF
    }

    fn forget(&self, uid: &str) {
        self.memory.gone(uid);
    }
}
