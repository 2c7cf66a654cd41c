use std::time::Duration;

use serde_json::Value;

use crate::{annotation::BackupStatus, error::Unusable, status::Outcome};

/// One step for an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Add our finalizer.
    Protect,
    /// Remove our finalizer from an object that is not to be protected, and is not being deleted.
    TakeBack,
    /// Create a backup.
    Create(Value),
    /// Report that there is nothing to create.
    Refuse(Unusable),
    /// Remove our finalizer from an object that is being deleted.
    Release(Release),
    /// Keep holding it.
    Hold {
        /// Why.
        status: BackupStatus,
        /// Whether the status is to be written to the object.
        tell: bool,
        /// The time until the next check, if nothing happens before.
        again: Duration,
    },
    /// Nothing is left to do.
    Settle,
}

/// The release of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// The reason for the release.
    pub outcome: Outcome,
    /// The reported status.
    pub status: BackupStatus,
}
