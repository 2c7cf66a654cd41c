//! The input of a decision about a command, as plain data.

use std::{sync::Arc, time::Duration};

use catena_api::command::RecentCommands;
use jiff::Timestamp;
use kube::discovery::ApiResource;
use operator_kit::run::Attempt;
use serde_json::Value;

use crate::{
    command::Command,
    line::{front, is_same},
};

/// The input of a decision about a command.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The command.
    pub command: Arc<Command>,
    /// The steps that this pass may take.
    pub attempt: Attempt,
    /// The time of the observation.
    pub now: Timestamp,
    /// All commands of its target, with itself, the oldest first.
    pub line: Vec<Arc<Command>>,
    /// Why there may be more of them.
    pub unknown: Option<String>,
    /// Its target.
    pub target: Look,
    /// Whether a live read has shown that it still waits.
    pub is_confirmed: bool,
    /// Whether its definition has a status for its run; `None` while that is unknown.
    pub takes_status: Option<bool>,
    /// The time since its status was written.
    pub since_told: Option<Duration>,
}

/// A look at the target of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// It is not needed.
    None,
    /// There was one a moment ago; the next is after this time.
    Later(Duration),
    /// The cluster does not serve its kind.
    NotServed,
    /// Its scope is not the one in the description of the kind.
    OtherScope,
    /// There is no object of its name with the uid to which the command is bound.
    Gone,
    /// It is there.
    Found(Box<Target>),
}

/// A target, read live.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The kind, in a version that is served.
    pub resource: ApiResource,
    /// The object.
    pub object: Value,
    /// The last commands that ran on it.
    pub ran: RecentCommands,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

impl Observed {
    /// Whether it is the turn of the command, as far as the caches show.
    #[must_use]
    pub fn is_first(&self) -> bool {
        front(&self.line, self.now).is_some_and(|first| is_same(first, &self.command))
    }

    /// Whether the target has to be looked at.
    #[must_use]
    pub fn needs_target(&self) -> bool {
        let row = &self.command.row;
        row.target_id().is_some() && (row.has_started() || row.is_expired(self.now) || self.is_first())
    }

    /// The target, if it is there.
    #[must_use]
    pub fn found(&self) -> Option<&Target> {
        if let Look::Found(target) = &self.target { Some(target) } else { None }
    }
}
