//! A pass over a `BasicDeployment`:
//!
//! 1. [`Observer::observe`] reads the present state: from the caches, and live where a cache is not enough.
//! 2. [`decide`] chooses one step.
//! 3. [`Executor::act`] takes it: one write, or one batch of writes of the same kind.
//! 4. If it wrote the child, an Event tells it.
//!
//! The write triggers the next pass.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::Arc,
    time::Duration,
};

use basic_deployment_controller::{
    Settings,
    decide::{Action, decide},
    events,
    observed::Observed,
};
use catena_api::{BasicDeployment, keys};
use kube::Resource;
use operator_kit::{
    report::{EventType, Events, StepError},
    run::{Backoffs, Controller, Requeue, SettingsHandle},
};

use crate::{act::Executor, observe::Observer};

/// The controller of `BasicDeployments`.
pub struct Deployments {
    /// The only reader.
    pub observer: Observer,
    /// The only writer.
    pub executor: Executor,
    /// Tells what was written.
    pub events: Events,
    /// Say which Events are published.
    pub settings: SettingsHandle<Settings>,
}

impl Controller for Deployments {
    type Kind = BasicDeployment;
    type Observed = Observed;
    type Action = Action;
    type Error = StepError;

    /// What refuses a step may be fixed unnoticed; with the jitter, this is a minute.
    const LONGEST_BACKOFF: Duration = Duration::from_secs(50);

    async fn observe(
        &self,
        deployment: Arc<BasicDeployment>,
        backoffs: Backoffs,
    ) -> Result<Observed, StepError> {
        let status_age = self.executor.status_age(&deployment);
        self.observer.observe(deployment, backoffs, status_age).await
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    fn step(&self, action: &Action) -> &'static str {
        action.step()
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Requeue, StepError> {
        let event = events::of(&observed, &action);
        let acted = self.executor.act(&observed, action).await;
        if let (Ok(_), Some(event)) = (&acted, event)
            && (event.type_ == EventType::Warning || self.settings.current().publishes_normal_events)
        {
            self.events.publish(&observed.deployment.object_ref(&()), event);
        }
        acted.map_err(|error| self.observer.with_source(error, &observed))
    }

    /// A pin may end the failure, and is no new generation.
    fn retry_key(&self, deployment: &BasicDeployment, _: &'static str) -> u64 {
        let annotations = deployment.metadata.annotations.as_ref();
        let pin = annotations.and_then(|all| all.get(keys::PINNED_REVISION));
        BuildHasherDefault::<DefaultHasher>::default().hash_one(pin)
    }

    fn forget(&self, uid: &str) {
        self.observer.forget(uid);
    }
}
