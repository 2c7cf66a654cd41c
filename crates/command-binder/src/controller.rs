//! A pass over a command:
//!
//! 1. [`Observer`] reads its target live, unless the command shows that it is bound.
//! 2. [`decide`] chooses one step: binding it to its target, reporting by a condition or an Event why it is not bound,
//!    or waiting for a missing object.
//! 3. [`Executor`] takes it. The write triggers the next pass.

use std::sync::Arc;

use command_binder::{
    command::CommandRow,
    decide::{Action, decide},
    observed::Observed,
};
use operator_kit::run::{Backoffs, Controller, Requeue};
use operator_watch::{ApiError, DynamicRow};

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
    type Error = ApiError;

    async fn observe(&self, command: Arc<Self::Kind>, backoffs: Backoffs) -> Result<Observed, ApiError> {
        self.observer.observe(command, backoffs).await
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Requeue, ApiError> {
        self.executor.act(&observed, action).await
    }

    fn forget(&self, uid: &str) {
        self.observer.forget(uid);
    }
}
