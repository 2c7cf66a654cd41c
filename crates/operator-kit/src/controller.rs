//! observe → decide → act, once a pass.

use std::{fmt::Debug, hash::Hash, sync::Arc, time::Duration};

use kube::{
    Resource,
    runtime::{
        controller::Action,
        reflector::{ObjectRef, Store},
    },
};
use tokio::time::Instant;

use crate::{
    Attempt, Failure, Reported, Writer,
    backoff::{Backoff, Version},
    events::Events,
    health::Health,
    metrics::Metrics,
};

/// How long one pass may take; nothing else bounds a request that hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// When a pass is tried again whose own write has not come back; the event usually does it sooner.
const RECHECK: Duration = Duration::from_secs(1);
/// When a failure that could not be reported is reported again at the soonest.
const UNREPORTED: Duration = Duration::from_secs(5);

/// A controller of one kind, or of several that are alike, in three rooms.
pub trait Controller: Send + Sync + 'static {
    /// The kind that is reconciled.
    type Kind: Resource<DynamicType: Clone + Debug + Eq + Hash + Unpin + Send + Sync>
        + Clone
        + Debug
        + Send
        + Sync
        + 'static;
    /// What a decision is made from.
    type Observed: Send;
    /// What was decided: one step.
    type Action: Debug + Send;
    /// What can go wrong.
    type Error: Reported;

    /// Reads caches, and live where a wrong answer would lose data. `attempt` goes into what is observed: an
    /// object that is backing off may only have its failure reported.
    fn observe(
        &self,
        object: Arc<Self::Kind>,
        attempt: Attempt,
    ) -> impl Future<Output = Result<Self::Observed, Self::Error>> + Send;

    /// Decides on the next step. Pure: no I/O, no clock, no randomness.
    fn decide(&self, observed: &Self::Observed) -> Self::Action;

    /// What else, beside another generation or other settings, is worth a try at once although the object is
    /// backing off: another answer than at the failure is.
    fn occasion(&self, _object: &Self::Kind) -> u64 {
        0
    }

    /// Forgets what is remembered of an object that is gone.
    fn forget(&self, _uid: &str) {}

    /// Takes the step: one write, or one bounded batch of independent writes of the same kind.
    fn act(
        &self,
        observed: Self::Observed,
        action: Self::Action,
    ) -> impl Future<Output = Result<Next, Self::Error>> + Send;
}

/// What follows a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Something was written; its own watch event brings the next pass.
    Written,
    /// Nothing is left to do until something changes.
    Settled,
    /// Nothing is to be done before this time has passed.
    Wait(Duration),
}

/// Runs passes of a controller.
pub(crate) struct Passes<C: Controller> {
    pub controller: Arc<C>,
    pub dynamic_type: <C::Kind as Resource>::DynamicType,
    pub store: Store<C::Kind>,
    pub backoff: Arc<Backoff>,
    pub writer: Writer,
    pub events: Events,
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    pub settings_version: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl<C: Controller> Passes<C> {
    /// One pass over an object. Never fails: what went wrong is kept for the object's status.
    pub async fn pass(&self, object: Arc<C::Kind>) -> Action {
        let uid = object.meta().uid.clone().unwrap_or_default();
        let action = self.pass_over(&object, &uid).await;
        // What the pass remembers of an object that went meanwhile would never be forgotten.
        let current = self.store.get(&ObjectRef::from_obj_with(&*object, self.dynamic_type.clone()));
        if current.is_none_or(|current| current.meta().uid != object.meta().uid) {
            self.forget(&uid);
        }
        action
    }

    async fn pass_over(&self, object: &Arc<C::Kind>, uid: &str) -> Action {
        if !self.writer.is_current(uid) {
            return Action::requeue(RECHECK);
        }
        let version = Version {
            generation: object.meta().generation.unwrap_or_default(),
            // What failed for want of a watch is tried again when the watch came.
            settings: (self.settings_version)().wrapping_add(self.health.epoch() << 32),
            occasion: self.controller.occasion(object),
        };
        let (attempt, retry_in) = self.backoff.attempt(uid, version);
        if attempt.failure().is_some_and(|failure| failure.is_expected) {
            return requeue(retry_in);
        }
        let allowed = attempt == Attempt::Allowed;
        let started = Instant::now();
        let result = tokio::time::timeout(PATIENCE, self.step(object.clone(), attempt)).await;
        let took = started.elapsed();
        let (failure, retry_after) = match result {
            Ok(Ok(next)) => {
                self.metrics.passed("success", took);
                if allowed && next != Next::Written {
                    self.backoff.forget(uid);
                    self.metrics.backing_off(self.backoff.len());
                }
                let wait = match next {
                    Next::Wait(time) => Some(time),
                    // A write that changed nothing brings no event.
                    Next::Written if self.writer.is_current(uid) => Some(RECHECK),
                    Next::Written | Next::Settled => None,
                };
                return requeue(wait.into_iter().chain(retry_in).min());
            }
            Ok(Err(error)) => {
                self.metrics.passed("error", took);
                (Failure::of(&error), error.retry_after())
            }
            Err(_) => {
                self.metrics.passed("timeout", took);
                (Failure::timed_out(PATIENCE), None)
            }
        };
        self.metrics.failed(failure.category.label(), failure.reason);
        match retry_in {
            // Not even the failure could be reported; that is no new attempt.
            Some(left) => Action::requeue(left.max(UNREPORTED)),
            None => self.failed(object, uid, version, &failure, retry_after),
        }
    }

    async fn step(&self, object: Arc<C::Kind>, attempt: Attempt) -> Result<Next, C::Error> {
        let observed = self.controller.observe(object, attempt).await?;
        let action = self.controller.decide(&observed);
        tracing::debug!(?action, "decided");
        self.controller.act(observed, action).await
    }

    fn failed(
        &self,
        object: &C::Kind,
        uid: &str,
        version: Version,
        failure: &Failure,
        retry_after: Option<Duration>,
    ) -> Action {
        let news = self.backoff.failed(uid, version, failure.clone(), retry_after);
        self.metrics.backing_off(self.backoff.len());
        if news && !failure.is_expected {
            tracing::warn!(reason = failure.reason, "{}", failure.message);
            self.events.warn(&object.object_ref(&self.dynamic_type), failure.reason, &failure.message);
        } else {
            tracing::debug!(reason = failure.reason, "{}", failure.message);
        }
        // The next pass may do no more than report the failure on the object.
        Action::requeue(Duration::ZERO)
    }

    /// Forgets all objects of a kind that is not watched any more: nobody would tell when they go.
    pub fn forget_all(&self) {
        for object in self.store.state() {
            self.forget(object.meta().uid.as_deref().unwrap_or_default());
        }
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.controller.forget(uid);
        self.backoff.forget(uid);
        self.writer.forget(uid);
        self.metrics.backing_off(self.backoff.len());
    }
}

fn requeue(after: Option<Duration>) -> Action {
    after.map_or_else(Action::await_change, Action::requeue)
}
