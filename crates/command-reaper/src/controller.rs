//! A pass over a command:
//!
//! 1. [`Observer`] reads the memory of this process about it: a deletion.
//! 2. [`decide`] chooses one step: deleting it once its TTL has expired, reporting why it is kept, or waiting.
//! 3. [`Executor`] takes it.

use std::sync::Arc;

use command_reaper::{
    command::CommandRow,
    decide::{Action, decide},
    observed::Observed,
};
use operator_kit::run::{Backoffs, Controller, Requeue};
use operator_watch::{DynamicRow, Failure};

use crate::{act::Executor, observe::Observer};

/// The controller of commands.
pub struct Commands {
    /// The only reader.
    pub observer: Observer,
    /// The only writer.
    pub executor: Executor,
}

impl Controller for Commands {
    type Kind = DynamicRow<CommandRow>;
    type Observed = Observed;
    type Action = Action;
    type Error = Failure;

    async fn observe(&self, command: Arc<Self::Kind>, backoffs: Backoffs) -> Result<Observed, Failure> {
        Ok(self.observer.observe(command, backoffs))
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Requeue, Failure> {
        self.executor.act(&observed, action).await
    }

    fn forget(&self, uid: &str) {
        self.observer.forget(uid);
    }
}
