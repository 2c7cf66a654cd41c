//! The memory of processes between passes.

use std::collections::{BTreeMap, BTreeSet};

use super::content::Json;
use crate::server::object::Text;

/// The memory of a process between passes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Of basic-deployment-controller.
    pub deployments: OfDeployments,
    /// Of command-reaper.
    pub reaper: OfReaper,
    /// Of backup-controller.
    pub backups: OfBackups,
}

impl Memory {
    /// Forgets an object that is gone.
    pub fn forget(&mut self, uid: &Text) {
        self.deployments.forget(uid);
        self.reaper.forget(uid);
        self.backups.forget(uid);
    }
}

/// The memory of basic-deployment-controller, which is that of one `BasicDeployment`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OfDeployments {
    /// The last applied rendering, and its state on the server.
    pub applied: Option<(Text, Json)>,
    /// The last replicas that were set on each child.
    pub replicas: BTreeMap<Text, i32>,
    /// The time of the last write to its status.
    pub written: Option<u8>,
    /// The time of the last report on a command.
    pub told: Option<u8>,
}

impl OfDeployments {
    /// Forgets a `BasicDeployment` that is gone.
    pub fn forget(&mut self, _: &Text) {
        *self = Self::default();
    }
}

/// The memory of command-reaper.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OfReaper {
    /// Deleted commands, by their names: the uid, and a digest of the spec.
    pub removed: BTreeMap<Text, (Text, u64)>,
    /// Kept commands that were reported.
    pub told: BTreeSet<Text>,
}

impl OfReaper {
    /// Forgets the reports on a command that is gone. Its deletion is remembered.
    pub fn forget(&mut self, uid: &Text) {
        self.told.remove(uid);
    }
}

/// The memory of backup-controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OfBackups {
    /// Refusals in a row to create a backup, by the uid of the object.
    pub refusals: BTreeMap<Text, u32>,
}

impl OfBackups {
    /// Forgets an object that is gone.
    pub fn forget(&mut self, uid: &Text) {
        self.refusals.remove(uid);
    }
}
