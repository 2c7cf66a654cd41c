//! A pass over an object of a protected kind:
//!
//! 1. [`Observer`] finds the entry of the settings that the object belongs to, and reads its backups live when it is
//!    being deleted.
//! 2. [`decide`] chooses one step: adding or removing the finalizer, creating a backup, reporting why the object is
//!    held, or releasing it.
//! 3. [`Executor`] takes it. The write triggers the next pass.

use std::{sync::Arc, time::Duration};

use backup_controller::{
    decide::{Action, decide},
    observed::{Observed, Row},
};
use operator_kit::run::{Backoffs, Controller, Requeue};
use operator_watch::{DynamicRow, Failure};

use crate::{
    act::Executor,
    observe::{Observer, Turn},
};

/// Time after which a large object asks for its turn again.
const TURN_INTERVAL: Duration = Duration::from_millis(500);

/// The controller of protected objects.
pub struct ProtectedObjects {
    /// The only reader.
    pub observer: Observer,
    /// The only writer.
    pub executor: Executor,
}

impl Controller for ProtectedObjects {
    type Kind = DynamicRow<Row>;
    /// The turn of a large object lasts until its step is taken; `None` if it is not its turn.
    type Observed = Option<(Observed, Option<Turn>)>;
    type Action = Action;
    type Error = Failure;

    async fn observe(
        &self,
        target: Arc<DynamicRow<Row>>,
        backoffs: Backoffs,
    ) -> Result<Self::Observed, Failure> {
        self.observer.observe(target, backoffs).await
    }

    fn decide(&self, observed: &Self::Observed) -> Action {
        observed.as_ref().map_or(Action::Settle, |(observed, _)| decide(observed))
    }

    async fn act(&self, observed: Self::Observed, action: Action) -> Result<Requeue, Failure> {
        let Some((observed, _turn)) = observed else { return Ok(Requeue::Untried(TURN_INTERVAL)) };
        self.executor.act(&observed, action).await
    }

    fn forget(&self, uid: &str) {
        self.observer.forget(uid);
        self.executor.forget(uid);
    }
}

#[cfg(test)]
mod tests;
