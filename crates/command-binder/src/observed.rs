//! The input of a decision about a command, as plain data.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::discovery::{ApiResource, Scope};
use operator_kit::run::Backoffs;
use operator_watch::DynamicRow;

use crate::command::CommandRow;

/// The input of a decision about a command.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The command.
    pub command: Arc<DynamicRow<CommandRow>>,
    /// The steps that this pass may take.
    pub backoffs: Backoffs,
    /// The time of the observation.
    pub now: Timestamp,
    /// Its target, if it had to be looked up.
    pub target: Option<Target>,
    /// The reference that bound it, in a version that is served, if its own one is not.
    pub refreshed: Option<OwnerReference>,
    /// Whether its label was found to name the target, because anybody can set a label.
    pub is_label_checked: bool,
    /// Whether the condition `Bound` may be written; otherwise Events are published. `None` if that is not known.
    pub can_report: Option<bool>,
}

/// A target, looked up live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The cluster does not serve its kind in any version.
    NotServed,
    /// Its kind is served.
    Served {
        /// The kind, in a version that is served, and its scope.
        kind: (ApiResource, Scope),
        /// The object with that name, if there is one where the command may have its target.
        object: Option<TargetObject>,
    },
}

/// An object that a command names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetObject {
    /// Its uid.
    pub uid: Box<str>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// When it was created.
    pub created: Option<Timestamp>,
}

impl Observed {
    /// The age of the command.
    #[must_use]
    pub fn age(&self) -> Duration {
        let created = self.command.metadata.creation_timestamp.as_ref();
        created.map_or(Duration::ZERO, |created| {
            Duration::try_from(self.now.duration_since(created.0)).unwrap_or_default()
        })
    }
}
