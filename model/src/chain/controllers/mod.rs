//! The controllers of the chain: their watches, and the glue around their own `decide`.

mod backups;
mod binder;
mod deployments;
mod reaper;
mod runner;

pub use deployments::rendered;

use catena_api::keys;

use super::{
    content::{Answer, COMMANDS, Object, Server, Stored},
    process::Process,
    scope::Scope,
    write::Write,
};
use crate::server::object::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Controller {
    Deployments,
    Binder,
    Runner,
    Reaper,
    Backups,
}

impl Controller {
    pub const ALL: &[Self] = &[Self::Deployments, Self::Binder, Self::Runner, Self::Reaper, Self::Backups];

    /// The watched kinds.
    pub fn watches(self) -> &'static [Kind] {
        match self {
            Self::Deployments => &[Kind::Deployment, Kind::ReplicaSet, Kind::Workload, Kind::Revision],
            Self::Binder | Self::Runner | Self::Reaper => &COMMANDS,
            Self::Backups => &[Kind::Deployment],
        }
    }

    /// The kinds that a pass is about.
    pub fn reconciles(self) -> &'static [Kind] {
        match self {
            Self::Deployments | Self::Backups => &[Kind::Deployment],
            Self::Binder | Self::Runner | Self::Reaper => &COMMANDS,
        }
    }
}

/// Whether a watch of a kind shows an object.
pub fn is_shown(kind: Kind, object: &Object) -> bool {
    let is_narrowed = matches!(kind, Kind::ReplicaSet | Kind::Workload | Kind::Revision);
    object.meta.key.kind == kind && (!is_narrowed || object.meta.labels.contains_key(keys::DEPLOYMENT_UID))
}

/// A pass over an object: the writes of the decided step.
pub fn pass(process: &mut Process, server: &Server, scope: &Scope, object: &Stored) -> Vec<Write> {
    match process.controller {
        Controller::Deployments => deployments::pass(process, server, scope, object),
        Controller::Binder => binder::pass(process, server, scope, object),
        Controller::Runner => runner::pass(process, server, scope, object),
        Controller::Reaper => reaper::pass(process, server, scope, object),
        Controller::Backups => backups::pass(process, server, scope, object),
    }
}

/// Records the answer to a write. Returns whether the write failed.
pub fn hears(process: &mut Process, write: &Write, answer: &Answer, clock: u8) -> bool {
    match process.controller {
        Controller::Deployments => deployments::hears(&mut process.memory, write, answer, clock),
        Controller::Binder => !matches!(answer, Answer::Done(_)),
        Controller::Runner => runner::hears(write, answer),
        Controller::Reaper => reaper::hears(&mut process.memory, write, answer),
        Controller::Backups => backups::hears(&mut process.memory, write, answer),
    }
}
