use std::time::Duration;

use serde_json::Value;

use crate::{
    annotation::BackupStatus,
    error::{Missing, Unusable},
    status::Outcome,
};

/// One step for an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on.
    Protect,
    /// Take our finalizer from what is not to be protected, and is not being deleted.
    TakeBack,
    /// Create a backup.
    Create(Value),
    /// Report that there is nothing to create.
    Refuse(Unusable),
    /// Report what was missing when a backup was created.
    ReportMissing(Missing),
    /// Take our finalizer from what is being deleted.
    Release(Release),
    /// Leave it held.
    Hold {
        /// Why.
        status: BackupStatus,
        /// Whether the object does not say so yet, and is to.
        tell: bool,
        /// When to look again, if nothing happens before.
        again: Duration,
    },
    /// Nothing is left to do.
    Settle,
}

/// How an object is let go.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Why it may go.
    pub outcome: Outcome,
    /// What is said about it.
    pub status: BackupStatus,
}
