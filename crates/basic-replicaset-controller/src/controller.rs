//! A pass over a `BasicReplicaSet`:
//!
//! 1. [`Observer`] reads its pods from the cache, renders its revision, and reads live the pods that may be its own.
//! 2. [`decide`] chooses one step: marking or adopting pods of the set, deleting, creating, or writing the status.
//! 3. [`Executor`] takes it. The write triggers the next pass.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::Arc,
    time::Duration,
};

use basic_replicaset_controller::{
    decide::{Action, decide},
    observed::Observed,
    step,
};
use catena_api::BasicReplicaSet;
use operator_kit::{
    report::Failures,
    run::{Backoffs, Controller, Requeue},
};

use crate::{act::Executor, observe::Observer};

/// The controller of `BasicReplicaSets`.
pub struct ReplicaSets {
    /// The only reader.
    pub observer: Observer,
    /// The only writer.
    pub executor: Executor,
}

impl Controller for ReplicaSets {
    type Kind = BasicReplicaSet;
    type Observed = Observed;
    type Action = Action;
    type Error = Failures;

    /// What refuses a step may be fixed unnoticed; with the jitter, this is a minute.
    const LONGEST_BACKOFF: Duration = Duration::from_secs(50);

    async fn observe(&self, set: Arc<BasicReplicaSet>, backoffs: Backoffs) -> Result<Observed, Failures> {
        let status_age = self.executor.status_age(&set);
        Ok(self.observer.observe(set, backoffs, status_age).await?)
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Requeue, Failures> {
        self.executor.act(&observed.set, action).await
    }

    fn step(&self, action: &Action) -> &'static str {
        action.step()
    }

    /// For creates, the key changes when a pod goes, because a quota may then have room for another one.
    fn retry_key(&self, set: &BasicReplicaSet, step: &'static str) -> u64 {
        if !step::CREATING.contains(&step) {
            return 0;
        }
        let digest = BuildHasherDefault::<DefaultHasher>::default();
        let pods = self.observer.pods_that_take_room(set);
        pods.iter().fold(0, |all, pod| all ^ digest.hash_one(&pod.uid))
    }

    fn forget(&self, uid: &str) {
        self.observer.forget(uid);
    }
}
