//! A pass over a `BasicDeployment`:
//!
//! 1. [`Observer::observe`] reads the present state: from the caches, and live where a cache is not enough.
//! 2. [`CommandQueue::of`] finds the standing of each of its commands.
//! 3. [`Observer::confirm`] reads live whether the next command still waits.
//! 4. [`decide`] chooses one step.
//! 5. [`Executor::act`] takes it: one write, or one batch of writes of the same kind.
//! 6. If it wrote the child, an Event tells it.
//!
//! The write triggers the next pass.

use std::{sync::Arc, time::Duration};

use basic_deployment_controller::{
    Settings,
    command_queue::CommandQueue,
    decide::{Action, decide},
    error::Error,
    events,
    observed::Observed,
};
use catena_api::BasicDeployment;
use kube::Resource;
use operator_kit::{
    report::{EventType, Events},
    run::{Attempt, Controller, LiveSettings, Next},
};

use crate::{act::Executor, observe::Observer};

/// Longest delay before a failing step is retried, because what refuses it may be fixed unnoticed; with the jitter, a minute.
const MAX_BACKOFF: Duration = Duration::from_secs(50);

/// The controller of `BasicDeployments`.
pub struct Deployments {
    /// The only reader.
    pub observer: Observer,
    /// The only writer.
    pub executor: Executor,
    /// Tells what was written.
    pub events: Events,
    /// Say which Events are published.
    pub settings: LiveSettings<Settings>,
}

impl Controller for Deployments {
    type Kind = BasicDeployment;
    type Observed = (Observed, CommandQueue);
    type Action = Action;
    type Error = Error;

    async fn observe(
        &self,
        deployment: Arc<BasicDeployment>,
        attempt: Attempt,
    ) -> Result<Self::Observed, Error> {
        let status_age = self.executor.status_age(&deployment);
        let mut observed = self.observer.observe(deployment, attempt, status_age).await?;
        let queue = CommandQueue::of(&observed);
        let confirmed = self.observer.confirm(&observed, queue.next()).await;
        observed.confirmed = confirmed.map_err(|error| Error::Unconfirmed(Box::new(error)))?;
        Ok((observed, queue))
    }

    fn decide(&self, (observed, queue): &Self::Observed) -> Action {
        decide(observed, queue)
    }

    fn step(&self, action: &Action) -> &'static str {
        action.step()
    }

    async fn act(&self, (observed, _): Self::Observed, action: Action) -> Result<Next, Error> {
        let event = events::of(&observed, &action);
        let acted = self.executor.act(&observed, action).await;
        if let (Ok(_), Some(event)) = (&acted, event)
            && (event.type_ == EventType::Warning || self.settings.current().events.normal)
        {
            self.events.publish(&observed.deployment.object_ref(&()), event);
        }
        acted.map_err(|error| self.observer.located(error, &observed))
    }

    /// A command or a pin may end the failure, and is no new generation.
    fn retry_key(&self, deployment: &BasicDeployment, _: &'static str) -> u64 {
        self.observer.fingerprint(deployment)
    }

    fn longest_backoff(&self) -> Duration {
        MAX_BACKOFF
    }

    fn forget(&self, uid: &str) {
        self.observer.forget(uid);
    }
}
