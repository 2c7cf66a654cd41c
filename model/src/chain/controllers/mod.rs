//! The controllers of the chain: each with its glue around its own `decide`.

pub mod backups;
pub mod binder;
pub mod deployments;
pub mod reaper;

use catena_api::keys;

use super::{
    content::{Answer, Object, Server, Stored},
    process::Process,
    scope::Scope,
    write::Write,
};
use crate::server::object::{Kind, Text};

/// A controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// basic-deployment-controller.
    Deployments,
    /// command-binder.
    Binder,
    /// command-reaper.
    Reaper,
    /// backup-controller.
    Backups,
}

/// The memory of a process between passes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Of basic-deployment-controller.
    pub deployments: deployments::Memory,
    /// Of command-reaper.
    pub reaper: reaper::Memory,
    /// Of backup-controller.
    pub backups: backups::Memory,
}

impl Memory {
    /// Forgets an object that is gone.
    pub fn forget(&mut self, uid: &Text) {
        self.deployments.forget(uid);
        self.reaper.forget(uid);
        self.backups.forget(uid);
    }
}

impl Controller {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Deployments, Self::Binder, Self::Reaper, Self::Backups];

    /// The watched kinds.
    #[must_use]
    pub fn watches(self) -> &'static [Kind] {
        match self {
            Self::Deployments => &[Kind::Deployment, Kind::ReplicaSet, Kind::Revision, Kind::Restart],
            Self::Binder | Self::Reaper => &[Kind::Restart],
            Self::Backups => &[Kind::Deployment],
        }
    }

    /// The kind that a pass is about.
    #[must_use]
    pub fn reconciles(self) -> Kind {
        self.watches()[0]
    }

    /// Whether its watch of a kind shows an object.
    #[must_use]
    pub fn is_shown(self, kind: Kind, object: &Object) -> bool {
        let is_narrowed = matches!(kind, Kind::ReplicaSet | Kind::Revision);
        object.meta.key.kind == kind
            && (!is_narrowed || object.meta.labels.contains_key(keys::DEPLOYMENT_UID))
    }

    /// A pass over an object: the writes of the decided step.
    #[must_use]
    pub fn pass(self, process: &mut Process, server: &Server, scope: &Scope, object: &Stored) -> Vec<Write> {
        match self {
            Self::Deployments => deployments::pass(process, server, scope, object),
            Self::Binder => binder::pass(process, server, scope, object),
            Self::Reaper => reaper::pass(process, server, scope, object),
            Self::Backups => backups::pass(process, server, scope, object),
        }
    }

    /// Records the answer to a write. Returns whether the write failed.
    #[must_use]
    pub fn hears(self, process: &mut Process, write: &Write, answer: &Answer, clock: u8) -> bool {
        match self {
            Self::Deployments => deployments::hears(&mut process.memory.deployments, write, answer, clock),
            Self::Binder => !matches!(answer, Answer::Done(_)),
            Self::Reaper => reaper::hears(&mut process.memory.reaper, write, answer),
            Self::Backups => backups::hears(&mut process.memory.backups, write, answer),
        }
    }
}
