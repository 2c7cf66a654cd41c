//! What a decision about a `BasicDeployment` is made from, as plain data.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use catena_api::{BasicDeployment, contract::ReplicaContract};
use jiff::Timestamp;
use operator_kit::{
    render::Rendered,
    report::{Failure, StatusAge, conditions::READY},
    run::Attempt,
    watch::WatchedResource,
};
use serde_json::Value;

use crate::{
    child::Child,
    command::{Command, CommandKind},
    desired::Desired,
    error::Refusal,
    revision::{Pin, Revision},
    undone::{Part, Undone},
};

/// What a decision about a `BasicDeployment` is made from.
#[derive(Clone)]
pub struct Observed {
    /// The `BasicDeployment`.
    pub deployment: Arc<BasicDeployment>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// Whether children and revisions are not known: what is there may be missing below.
    pub is_blind: bool,
    /// When it was observed.
    pub now: Timestamp,
    /// Where children are.
    pub place: WatchedResource,
    /// Where children have their fields.
    pub contract: ReplicaContract,
    /// What spec and template give, or why they give nothing.
    pub rendered: Result<Rendered, Refusal>,
    /// What holds the child on another rendering than that.
    pub pin: Option<Pin>,
    /// What the child is to be, or why there is nothing.
    pub desired: Result<Desired, Refusal>,
    /// What is there under the child's name.
    pub child: Found,
    /// Children of other names, from an earlier template.
    pub others: Vec<Arc<Child>>,
    /// The revisions, the oldest first.
    pub revisions: Vec<Arc<Revision>>,
    /// What has the name of the revision that is to be stored, looked up live where it could not be created.
    pub occupant: Option<Occupant>,
    /// The commands that are bound to it, the oldest first; `None` while they are not known.
    pub commands: Option<Vec<Arc<Command>>>,
    /// What the next command takes, if it may be carried out.
    pub prepared: Option<Prepared>,
    /// Commands whose status the server does not take: they are left alone.
    pub unheard: HashSet<String>,
    /// How long ago a command's status was written.
    pub since_told: Option<Duration>,
    /// What the server made of the last apply of this hash, where it was not what was asked for.
    pub settled_as: Option<Value>,
    /// The replicas that each child was given last, by its uid.
    pub given_replicas: HashMap<String, i32>,
    /// What somebody else had changed on the child, and was put back lately.
    pub undone: HashMap<Part, Undone>,
    /// How long nothing has moved.
    pub since_progress: Duration,
    /// How long the status has been as it is.
    pub status_age: StatusAge,
}

/// Where what else is written is, beside children.
#[derive(Clone, Debug)]
pub struct WatchedResources {
    /// Revisions.
    pub revisions: WatchedResource,
    /// `BasicDeploymentRestarts`.
    pub restarts: WatchedResource,
    /// `BasicDeploymentRollbacks`.
    pub rollbacks: WatchedResource,
}

/// What is there under the child's name.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// The child.
    Ours(Arc<Child>),
    /// An object without a controller.
    Orphan(Arc<Child>),
    /// What a former `BasicDeployment` of this name left: the garbage collector takes it.
    Leaving(Arc<Child>),
    /// An object that somebody else controls.
    Foreign(Arc<Child>),
}

/// What has the name of a revision and is not known as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// The revision, of which somebody took the label or the hash.
    Ours {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// Somebody else's object.
    Foreign {
        /// Its name.
        name: String,
    },
}

/// What carrying out a command takes, looked up live.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// The uid of the command, which still waits.
    pub command: String,
    /// For a rollback: what the child is to be, and what is there under its name.
    pub target: Option<(Desired, Found)>,
}

impl Observed {
    /// The failure that holds up everything.
    #[must_use]
    pub fn held_up(&self) -> Option<&Failure> {
        match &self.attempt {
            Attempt::Deferred(failure) => Some(failure),
            Attempt::Allowed | Attempt::Without(_) => None,
        }
    }

    /// All children, the one that is wanted first.
    pub fn children(&self) -> impl Iterator<Item = &Arc<Child>> {
        self.child.ours().into_iter().chain(&self.others)
    }

    /// Children of former names, which serve until the child is ready.
    pub fn former_children(&self) -> impl Iterator<Item = &Arc<Child>> {
        self.others.iter().filter(|other| !other.is_deleting)
    }

    /// Whether all wanted replicas serve what the child is to be.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let (Some(child), Ok(desired)) = (self.child.ours(), &self.desired) else { return false };
        self.held_up().is_none() && child.hash() == desired.hash && self.serves(child)
    }

    /// Whether all wanted replicas of a child serve what the child is now.
    #[must_use]
    pub fn serves(&self, child: &Child) -> bool {
        let (contract, wanted) = (&self.contract, self.deployment.spec.replicas);
        let says_ready = child.condition(contract, READY).is_none_or(|ready| ready.is_true);
        !child.is_deleting
            && child.replicas(contract) == Some(wanted)
            && child.is_current(contract)
            && child.active(contract) >= wanted
            && child.updated(contract).is_none_or(|updated| updated >= wanted)
            && says_ready
    }

    /// The hash of what the child is to be.
    #[must_use]
    pub fn wanted_hash(&self) -> Option<&str> {
        match &self.desired {
            Ok(desired) => Some(&desired.hash),
            Err(_) => self.child.ours().map(|child| child.hash()),
        }
    }

    /// Whether the status of a command may still change.
    #[must_use]
    pub fn may_tell(&self, command: &Command) -> bool {
        !command.has_ended() && !command.is_deleting && !self.unheard.contains(&command.uid)
    }

    /// Whether a command is for this `BasicDeployment`, and has not ended.
    #[must_use]
    pub fn is_open(&self, command: &Command) -> bool {
        self.may_tell(command) && command.is_directed_at(&self.deployment)
    }

    /// The child that a command was carried out on.
    #[must_use]
    pub fn carrier(&self, command: &Command) -> Option<&Arc<Child>> {
        self.children().find(|child| child.bears(&command.uid))
    }

    /// Whether a command was carried out: the child bears its uid, or what is to become the child does, or what it
    /// once became.
    #[must_use]
    pub fn is_carried_out(&self, command: &Command) -> bool {
        let is_it = |named: Option<&String>| named == Some(&command.uid);
        self.carrier(command).is_some()
            || self.pin.as_ref().is_some_and(|pin| is_it(pin.rejects.command.as_ref()))
            || self.revisions.iter().any(|revision| is_it(revision.rejects.command.as_ref()))
    }

    /// Why the next command can never be carried out, as far as it takes a live look to know.
    #[must_use]
    pub fn refused_target(&self) -> Option<Refusal> {
        let (desired, found) = self.prepared.as_ref()?.target.as_ref()?;
        match found {
            Found::Nothing | Found::Ours(_) => None,
            Found::Orphan(_) | Found::Leaving(_) | Found::Foreign(_) => Some(Refusal::ChildNotOwned {
                kind: self.place.resource.kind.clone(),
                name: desired.name().to_owned(),
                holder: found.holder(),
            }),
        }
    }
}

impl WatchedResources {
    /// Where commands of a kind are.
    #[must_use]
    pub fn of(&self, kind: CommandKind) -> &WatchedResource {
        match kind {
            CommandKind::Restart => &self.restarts,
            CommandKind::Rollback => &self.rollbacks,
        }
    }
}

impl Found {
    /// Who holds it, for people.
    #[must_use]
    pub fn holder(&self) -> String {
        let owner = match self {
            Self::Foreign(child) | Self::Leaving(child) => child.owner.as_ref(),
            _ => None,
        };
        match owner {
            Some(owner) => format!("{} {:?}", owner.kind, owner.name),
            None => {
                "an unknown owner: it has no controller, and was not rendered from this template".to_owned()
            }
        }
    }

    /// The child, if it is there and ours.
    #[must_use]
    pub fn ours(&self) -> Option<&Arc<Child>> {
        match self {
            Self::Ours(child) => Some(child),
            _ => None,
        }
    }
}
