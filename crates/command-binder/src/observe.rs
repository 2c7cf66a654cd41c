use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use kube::Client;
use operator_kit::{Attempt, Controller, Next, ReadError, Watched, live};

use crate::{
    act::Hands,
    command::{CommandRow, Finding, Reference},
    decide::{Action, decide, place},
    error::Error,
    kind::TargetKind,
    schemas::Schemas,
    waiting::{TargetName, Waiting},
};

/// What a decision about a command is made from.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The command.
    pub command: Arc<Watched<CommandRow>>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// When it was observed.
    pub now: Timestamp,
    /// Its target, where one had to be looked up.
    pub target: Option<Target>,
    /// Whether the condition `Bound` may be written; else Events tell.
    pub can_report: bool,
    /// The reason that was told last of it by an Event.
    pub told: Option<&'static str>,
}

/// A target, looked up live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// It is there.
    Found {
        /// Its uid.
        uid: Box<str>,
        /// Whether it is being deleted.
        is_terminating: bool,
    },
    /// There is no such object.
    Missing,
    /// There is no such kind.
    NotServed,
}

/// The controller of commands.
pub struct Commands {
    client: Client,
    waiting: Waiting,
    schemas: Schemas,
    hands: Hands,
    told: Mutex<HashMap<String, &'static str>>,
}

impl Commands {
    pub fn new(client: Client, waiting: Waiting, hands: Hands) -> Self {
        Self { schemas: Schemas::new(client.clone()), client, waiting, hands, told: Mutex::default() }
    }

    /// The command is woken when the target comes, also when that is before the answer that there is none.
    async fn look_up(&self, command: &Watched<CommandRow>, to: &Reference) -> Result<Option<Target>, Error> {
        let Ok(namespace) = place(command, to) else { return Ok(None) };
        let name = TargetName {
            kind: to.kind.clone(),
            namespace: namespace.unwrap_or_default().into(),
            name: to.name.clone(),
        };
        self.waiting.enter(command, name);
        let target = get(&self.client, &to.kind, namespace, &to.name).await?;
        if matches!(target, Target::Found { is_terminating: false, .. }) {
            self.waiting.leave(command.metadata.uid.as_deref().unwrap_or_default());
        }
        Ok(Some(target))
    }

    fn told(&self) -> std::sync::MutexGuard<'_, HashMap<String, &'static str>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A target as it is now: a cache might still show one that was replaced.
async fn get(
    client: &Client,
    kind: &TargetKind,
    namespace: Option<&str>,
    name: &str,
) -> Result<Target, Error> {
    match live::metadata(client, &kind.resource, namespace.unwrap_or_default(), name).await {
        Ok(found) => Ok(Target::Found {
            uid: found.uid.unwrap_or_default().into(),
            is_terminating: found.deletion_timestamp.is_some(),
        }),
        // Only the answer about an object names it; the other says that the path is not known.
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let is_about_object = status.details.as_ref().is_some_and(|details| details.name == name);
            Ok(if is_about_object { Target::Missing } else { Target::NotServed })
        }
        Err(error) => Err(ReadError::of(&error, &kind.resource.kind, name).into()),
    }
}

impl Controller for Commands {
    type Kind = Watched<CommandRow>;
    type Observed = Observed;
    type Action = Action;
    type Error = Error;

    async fn observe(&self, command: Arc<Self::Kind>, attempt: Attempt) -> Result<Observed, Error> {
        let is_needed = attempt == Attempt::Allowed && command.metadata.deletion_timestamp.is_none();
        let target = match &command.row.finding {
            Finding::Target(to) if is_needed && command.row.settled_owner(to).is_none() => {
                self.look_up(&command, to).await?
            }
            _ => None,
        };
        let told = self.told().get(command.metadata.uid.as_deref().unwrap_or_default()).copied();
        let can_report = self.schemas.take_condition(&command.row.kind).await?;
        Ok(Observed { command, attempt, now: Timestamp::now(), target, can_report, told })
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Next, Error> {
        if let Action::Tell(verdict) = &action {
            let uid = observed.command.metadata.uid.clone().unwrap_or_default();
            self.told().insert(uid, verdict.reason);
        }
        self.hands.act(&observed, action).await
    }

    fn forget(&self, uid: &str) {
        self.waiting.leave(uid);
        self.told().remove(uid);
    }
}
