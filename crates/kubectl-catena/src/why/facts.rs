//! The input of a diagnosis: the chain of an object, and its surroundings.

use command_binder::verdict::Verdict;
use jiff::Timestamp;

use super::{controllers::Controllers, refused_settings::RefusedSettings, related::Related};
use crate::{
    chain::{Gap, Node},
    object::Identity,
    protected_kinds::ProtectedKinds,
};

/// Everything that a diagnosis is based on.
#[derive(Debug)]
pub struct Facts<'c> {
    /// The object that is asked about.
    pub asked: &'c Node,
    /// The top of the chain that it belongs to.
    pub top: &'c Node,
    /// The surroundings of the chain.
    pub surroundings: &'c Surroundings,
    /// The current time.
    pub now: Timestamp,
}

/// The surroundings of a chain.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The controllers of Catena.
    pub controllers: Controllers,
    /// The namespace, if it is being deleted.
    pub namespace: Option<Node>,
    /// Objects beside the chain.
    pub related: Related,
    /// Warnings about objects of the namespace, the newest last.
    pub warnings: Vec<Warning>,
    /// The owner of the asked object, if it is missing.
    pub lost_owner: Option<Identity>,
    /// The target of the asked command, if it is missing.
    pub missing_target: Option<Identity>,
    /// The state of the asked object by command-binder's rules, if its kind is a foreign one of commands.
    pub binding: Option<Binding>,
    /// The reason why command-reaper keeps the asked command.
    pub kept_because: Option<String>,
    /// The kinds that have an entry in backup-controller's settings, if these can be read.
    pub protected: Option<ProtectedKinds>,
    /// Settings of our controllers that are not in force.
    pub refused_settings: Vec<RefusedSettings>,
    /// Unread parts.
    pub gaps: Vec<Gap>,
    /// Whether dependents of the asked object may be among the unread parts.
    pub hides_dependents: bool,
}

/// The state of a command of a foreign kind, by command-binder's rules.
#[derive(Debug)]
pub enum Binding {
    /// It shows that it is bound.
    Bound,
    /// Nothing is in the way of binding it.
    Due,
    /// It is not bound for this reason.
    Obstacle(Verdict),
    /// Nobody binds its kind, for this reason.
    Nobody(Nobody),
}

/// Why nobody binds commands of a kind.
#[derive(Debug, PartialEq, Eq)]
pub enum Nobody {
    /// The settings of command-binder have no entry for the kind, and its definition does not describe it.
    NoEntry,
    /// The definition says that it is a kind of commands, but command-binder is not to look for such definitions.
    NotDiscovered,
    /// The definition says that it is a kind of commands, but not how they are bound.
    NotDescribed(String),
}

/// An Event of type Warning.
#[derive(Clone, Debug)]
pub struct Warning {
    /// The uid of the object that it is about.
    pub about: String,
    /// Its reporter.
    pub by: String,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The time when it was last seen.
    pub at: Option<Timestamp>,
}
