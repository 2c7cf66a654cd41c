//! The input of a diagnosis: the chain of an object, and its surroundings.

use jiff::Timestamp;

use super::{Controllers, RefusedSettings, Related, Verdict};
use crate::{
    chain::Node,
    cluster::{Gap, Identity},
    protection::ProtectedKinds,
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

impl Facts<'_> {
    /// Whether a controller is running.
    pub fn verdict(&self, controller: &str) -> Verdict {
        self.surroundings.controllers.verdict(controller, self.now)
    }
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
    /// The remark about the owner of the asked object, if it is missing.
    pub lost_owner: Option<String>,
    /// The target of the asked command, if it is missing.
    pub missing_target: Option<Identity>,
    /// Whether the kind of the asked object is declared as one of commands on its definition.
    pub is_declared_command: bool,
    /// The kinds that have an entry in backup-controller's settings, if these can be read.
    pub protected: Option<ProtectedKinds>,
    /// Settings of our controllers that are not in force.
    pub refused_settings: Vec<RefusedSettings>,
    /// Unread parts.
    pub gaps: Vec<Gap>,
    /// Whether dependents of the asked object may be among the unread parts.
    pub hides_dependents: bool,
    /// Whether dependents of any object of the chain may be.
    pub is_incomplete: bool,
}

/// An Event of type Warning.
#[derive(Clone, Debug, Default)]
pub struct Warning {
    /// The uid of the object that it is about.
    pub about: String,
    /// Its reporter.
    pub by: String,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The number of times that it was seen; zero if unknown.
    pub count: i32,
    /// The time when it was first seen.
    pub since: Option<Timestamp>,
    /// The time when it was last seen.
    pub at: Option<Timestamp>,
}
