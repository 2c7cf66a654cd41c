//! The input of a diagnosis: the chain of an object, and its surroundings.

use command_binder::decide::Verdict;
use jiff::Timestamp;

use super::controllers::Controllers;
use crate::{
    chain::{Gap, Node},
    object::Identity,
    protected_kinds::ProtectedKinds,
};

/// All that is known.
#[derive(Debug)]
pub struct Facts<'c> {
    /// The object that is asked about.
    pub asked: &'c Node,
    /// The top of the chain that it belongs to.
    pub top: &'c Node,
    /// What is around the chain.
    pub around: &'c Around,
    /// What time it is.
    pub now: Timestamp,
}

/// What is around a chain.
#[derive(Debug, Default)]
pub struct Around {
    /// The controllers of Catena.
    pub controllers: Controllers,
    /// Since when the namespace is being deleted.
    pub namespace_deleted: Option<Timestamp>,
    /// Warnings about objects of the namespace, the newest last.
    pub warnings: Vec<Warning>,
    /// The owner of the asked object that is not there.
    pub lost_owner: Option<Identity>,
    /// The target of the asked command that is not there.
    pub missing_target: Option<Identity>,
    /// What keeps the asked object from being bound, by command-binder's rules.
    pub unbound: Option<Verdict>,
    /// The label or annotation for which command-reaper keeps the asked command.
    pub kept_for: Option<String>,
    /// The kinds that have an entry in backup-controller's settings, if these can be read.
    pub protected: Option<ProtectedKinds>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// An Event of type Warning.
#[derive(Clone, Debug)]
pub struct Warning {
    /// The uid of the object that it is about.
    pub about: String,
    /// The controller that says it.
    pub by: String,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// When it was last seen.
    pub at: Option<Timestamp>,
}
