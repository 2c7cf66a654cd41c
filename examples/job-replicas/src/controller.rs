//! A pass over a `JobReplicas`:
//!
//! 1. [`Observer`] reads its Jobs from the cache.
//! 2. [`decide`] chooses one step: deleting or creating Jobs, or writing the status.
//! 3. [`Executor`] takes it. The write triggers the next pass.

use std::sync::Arc;

use job_replicas::{
    decide::{Action, decide},
    kind::JobReplicas,
    observed::Observed,
};
use operator_kit::run::{Backoffs, Controller, Next};
use operator_watch::Failure;

use crate::{act::Executor, observe::Observer};

/// The controller of `JobReplicas`.
pub struct JobReplicasController {
    /// The only reader.
    pub observer: Observer,
    /// The only writer.
    pub executor: Executor,
}

impl Controller for JobReplicasController {
    type Kind = JobReplicas;
    type Observed = Observed;
    type Action = Action;
    type Error = Failure;

    async fn observe(&self, set: Arc<JobReplicas>, backoffs: Backoffs) -> Result<Observed, Failure> {
        self.observer.observe(set, backoffs)
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    fn step(&self, action: &Action) -> &'static str {
        action.step()
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Next, Failure> {
        self.executor.act(&observed.set, action).await
    }
}
