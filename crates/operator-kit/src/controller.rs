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
        if self.current(&object).is_none() {
            self.forget(&uid);
        }
        action
    }

    /// The object as its watch shows it now; `None` when it went.
    fn current(&self, object: &C::Kind) -> Option<Arc<C::Kind>> {
        let current = self.store.get(&ObjectRef::from_obj_with(object, self.dynamic_type.clone()))?;
        (current.meta().uid == object.meta().uid).then_some(current)
    }

    async fn pass_over(&self, queued: &C::Kind, uid: &str) -> Action {
        if !self.writer.is_current(uid) {
            return Action::requeue(RECHECK);
        }
        // What was queued may be from before a write that has come back since.
        let Some(object) = self.current(queued) else { return Action::await_change() };
        let version = Version {
            generation: object.meta().generation.unwrap_or_default(),
            // What failed for want of a watch is tried again when the watch came.
            settings: (self.settings_version)().wrapping_add(self.health.epoch() << 32),
            occasion: self.controller.occasion(&object),
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
            None => self.failed(&object, uid, version, &failure, retry_after),
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{
        Client, Config,
        api::ObjectMeta,
        runtime::{
            reflector::store::Writer as StoreWriter,
            watcher::Event::{Apply, Delete},
        },
    };

    use super::*;
    use crate::WriteError;

    /// Keeps the versions of what it was given.
    #[derive(Default)]
    struct Versions(Mutex<Vec<String>>);

    impl Controller for Versions {
        type Kind = ConfigMap;
        type Observed = String;
        type Action = String;
        type Error = WriteError;

        async fn observe(&self, object: Arc<ConfigMap>, _: Attempt) -> Result<String, WriteError> {
            Ok(object.metadata.resource_version.clone().unwrap())
        }

        fn decide(&self, version: &String) -> String {
            version.clone()
        }

        async fn act(&self, _: String, version: String) -> Result<Next, WriteError> {
            self.0.lock().unwrap().push(version);
            Ok(Next::Settled)
        }
    }

    fn object(uid: &str, version: &str) -> ConfigMap {
        let metadata = ObjectMeta {
            name: Some("settings".into()),
            namespace: Some("shop".into()),
            uid: Some(uid.into()),
            resource_version: Some(version.into()),
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    /// Nothing here talks to a server.
    fn passes(store: Store<ConfigMap>) -> Passes<Versions> {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let metrics = Arc::<Metrics>::default();
        Passes {
            controller: Arc::default(),
            dynamic_type: (),
            store,
            backoff: Arc::default(),
            writer: Writer::new(client.clone(), "versions", metrics.clone()),
            events: Events::new(client, "versions", "versions-0", metrics.clone()),
            health: Arc::default(),
            metrics,
            settings_version: Box::new(|| 1),
        }
    }

    #[tokio::test]
    async fn a_pass_sees_what_came_after_it_was_queued() {
        let mut shown = StoreWriter::default();
        let passes = passes(shown.as_reader());
        shown.apply_watcher_event(&Apply(object("a", "2")));
        passes.pass(Arc::new(object("a", "1"))).await;
        assert_eq!(*passes.controller.0.lock().unwrap(), ["2"]);
    }

    #[tokio::test]
    async fn there_is_no_pass_over_what_is_gone_or_another_one_by_now() {
        let mut shown = StoreWriter::default();
        let passes = passes(shown.as_reader());
        shown.apply_watcher_event(&Apply(object("b", "2")));
        passes.pass(Arc::new(object("a", "1"))).await;
        shown.apply_watcher_event(&Delete(object("b", "3")));
        passes.pass(Arc::new(object("b", "2"))).await;
        assert!(passes.controller.0.lock().unwrap().is_empty());
    }
}
