//! Action → writes. The only writer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use catena_api::BasicDeployment;
use operator_kit::{Next, Writer, slow_start};
use serde_json::{Value, json};

use crate::{
    child::Child,
    children::Known,
    decide::Action,
    error::Error,
    observe::{Desired, Observed},
};

/// Writes children and statuses, and remembers what the server made of them.
pub struct Writes {
    writer: Writer,
    applied: Mutex<HashMap<String, Applied>>,
}

struct Applied {
    hash: String,
    settled_as: Value,
    healed: Option<Instant>,
}

/// What is remembered of the last apply.
#[derive(Default)]
pub struct Remembered {
    /// What the server made of the rendering that is still wanted.
    pub settled_as: Option<Value>,
    /// How long ago somebody's change was undone.
    pub since_healed: Option<Duration>,
}

impl Writes {
    pub fn new(writer: Writer) -> Self {
        Self { writer, applied: Mutex::default() }
    }

    /// How long ago this process wrote the status.
    pub fn status_age(&self, uid: &str) -> Option<Duration> {
        self.writer.status_age(uid)
    }

    /// What is remembered of the last apply for a `BasicDeployment`.
    pub fn remembered(&self, uid: &str, desired: Option<&Desired>) -> Remembered {
        let applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        applied.get(uid).map_or_else(Remembered::default, |applied| Remembered {
            settled_as: desired
                .filter(|desired| desired.hash == applied.hash)
                .map(|_| applied.settled_as.clone()),
            since_healed: applied.healed.map(|healed| healed.elapsed()),
        })
    }

    /// Forgets a `BasicDeployment` that is gone.
    pub fn forget(&self, uid: &str) {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// Takes a step.
    pub async fn act(&self, known: &Known, observed: &Observed, action: Action) -> Result<Next, Error> {
        let deployment = &*observed.deployment;
        match action {
            Action::Create(desired) => self.apply(known, observed, &desired, None, false).await,
            Action::Apply { child, desired, heals } => {
                self.apply(known, observed, &desired, Some(&child), heals).await
            }
            Action::Scale(child) => {
                let mut patch =
                    json!({"metadata": {"name": child.name, "namespace": child.namespace, "uid": child.uid}});
                observed.contract.replicas.set(&mut patch, deployment.spec.replicas.into());
                self.writer.merge(uid(deployment), known.cache.seen(), &known.resource, &patch).await?;
                Ok(Next::Written)
            }
            Action::Delete(children) => {
                slow_start(children, |child| self.delete(known, deployment, child)).await?;
                Ok(Next::Written)
            }
            Action::Refuse(refusal) => Err(refusal.into()),
            Action::WriteStatus(status) => {
                self.writer.apply_status(deployment, &status).await?;
                Ok(Next::Written)
            }
            Action::Wait(time) => Ok(Next::Wait(time)),
            Action::Settle => Ok(Next::Settled),
        }
    }

    async fn apply(
        &self,
        known: &Known,
        observed: &Observed,
        desired: &Desired,
        child: Option<&Child>,
        heals: bool,
    ) -> Result<Next, Error> {
        let deployment = &*observed.deployment;
        let mut object = desired.object.clone();
        observed.contract.replicas.set(&mut object, deployment.spec.replicas.into());
        if let Some(child) = child {
            object["metadata"]["uid"] = child.uid.as_str().into();
        }
        let answer = self.writer.apply(uid(deployment), known.cache.seen(), &known.resource, &object).await?;
        let applied = Applied {
            hash: desired.hash.clone(),
            settled_as: desired.seen_in(&answer),
            healed: heals.then(Instant::now),
        };
        self.applied
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(uid(deployment).to_owned(), applied);
        Ok(Next::Written)
    }

    async fn delete(
        &self,
        known: &Known,
        deployment: &BasicDeployment,
        child: Arc<Child>,
    ) -> Result<(), Error> {
        let seen = known.cache.seen();
        Ok(self
            .writer
            .delete(uid(deployment), seen, &known.resource, &child.namespace, &child.name, &child.uid)
            .await?)
    }
}

fn uid(deployment: &BasicDeployment) -> &str {
    deployment.metadata.uid.as_deref().unwrap_or_default()
}
