//! observe → decide → act, once a pass.

use std::{fmt::Debug, sync::Arc, time::Duration};

use kube::{Resource, runtime::controller::Action};
use serde::de::DeserializeOwned;
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

/// A controller of one kind, in three rooms.
pub trait Controller: Send + Sync + 'static {
    /// The kind that is reconciled.
    type Kind: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static;
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
    pub controller: C,
    pub backoff: Backoff,
    pub writer: Writer,
    pub events: Events,
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    pub settings_version: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl<C: Controller> Passes<C> {
    /// One pass over an object. Never fails: what went wrong is kept for the object's status.
    pub async fn pass(&self, object: Arc<C::Kind>) -> Action {
        let meta = object.meta();
        let uid = meta.uid.clone().unwrap_or_default();
        if !self.writer.is_current(&uid) {
            return Action::requeue(RECHECK);
        }
        let version = Version {
            generation: meta.generation.unwrap_or_default(),
            // What failed for want of a watch is tried again when the watch came.
            settings: (self.settings_version)().wrapping_add(self.health.recoveries() << 32),
        };
        let (attempt, retry_in) = self.backoff.attempt(&uid, version);
        let allowed = attempt == Attempt::Allowed;
        let started = Instant::now();
        let result = tokio::time::timeout(PATIENCE, self.step(object.clone(), attempt)).await;
        let took = started.elapsed();
        match result {
            Ok(Ok(next)) => {
                self.metrics.passed("success", took);
                if allowed && next == Next::Settled {
                    self.backoff.forget(&uid);
                    self.metrics.backing_off(self.backoff.len());
                }
                let wait = match next {
                    Next::Wait(time) => Some(time),
                    Next::Written | Next::Settled => None,
                };
                requeue(wait.into_iter().chain(retry_in).min())
            }
            Ok(Err(error)) => {
                self.metrics.passed("error", took);
                self.failed(
                    &object,
                    &uid,
                    version,
                    &Failure::of(&error),
                    error.retry_after(),
                    error.is_expected(),
                )
            }
            Err(_) => {
                self.metrics.passed("timeout", took);
                let message = format!(
                    "a pass took longer than {} s: the API server does not answer; trying again",
                    PATIENCE.as_secs()
                );
                let failure = Failure { category: crate::Category::Transient, reason: "TimedOut", message };
                self.failed(&object, &uid, version, &failure, None, false)
            }
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
        is_expected: bool,
    ) -> Action {
        self.metrics.failed(failure.category.label(), failure.reason);
        let news = self.backoff.failed(uid, version, failure.clone(), retry_after);
        self.metrics.backing_off(self.backoff.len());
        if news && !is_expected {
            tracing::warn!(reason = failure.reason, "{}", failure.message);
            self.events.warn(object, failure.reason, &failure.message);
        } else {
            tracing::debug!(reason = failure.reason, "{}", failure.message);
        }
        // What passes by itself need not be told; all else is told on the object by a pass that may do no more.
        Action::requeue(if is_expected { RECHECK } else { Duration::ZERO })
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
