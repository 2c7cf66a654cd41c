//! The input of a decision about a command, as plain data.

use std::{collections::HashSet, sync::Arc, time::Duration};

use catena_api::command::RecentCommands;
use jiff::Timestamp;
use kube::discovery::ApiResource;
use operator_kit::run::Backoffs;
use operator_watch::ObjectId;
use serde_json::Value;

use crate::{
    command::Command,
    line::{candidates, concerned, is_open, is_same},
};

/// The input of a decision about a command.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The command.
    pub command: Arc<Command>,
    /// The steps that this pass may take.
    pub backoffs: Backoffs,
    /// The time of the observation.
    pub now: Timestamp,
    /// All commands of its target, with itself, the oldest first.
    pub line: Vec<Arc<Command>>,
    /// Why there may be more of them.
    pub unknown: Option<String>,
    /// Its target.
    pub target: Look,
    /// The uids of those of its target whose patch the API server refused at the last try.
    pub refused: HashSet<Box<str>>,
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

impl Target {
    /// Whether it has the proof that a command ran.
    #[must_use]
    pub fn proves(&self, command: &Command) -> bool {
        self.ran.has(ObjectId::of(command).uid)
    }
}

impl Observed {
    /// The commands that run before it if they can, as far as the caches show; `None` if it is not its turn anyway.
    #[must_use]
    pub fn rivals(&self) -> Option<Vec<&Arc<Command>>> {
        let mut candidates = candidates(&self.line, self.now);
        let own = candidates.iter().position(|candidate| is_same(candidate, &self.command))?;
        candidates.truncate(own);
        Some(candidates)
    }

    /// Whether the target has to be looked at.
    #[must_use]
    pub fn needs_target(&self) -> bool {
        let row = &self.command.row;
        let is_concerned =
            concerned(&self.line, None, self.now).any(|command| is_same(command, &self.command));
        row.target_id().is_some() && (is_concerned || row.is_expired(self.now))
    }

    /// The other commands that ran on the target, although their statuses do not say so. Each has to look at it by itself: where an
    /// older one was bound since, it is not its turn any more.
    pub fn unreported(&self) -> impl Iterator<Item = &Arc<Command>> {
        let is_proven = |other: &Command| self.found().is_some_and(|target| target.proves(other));
        let is_other = |other: &Command| is_open(other) && !is_same(other, &self.command);
        self.line.iter().filter(move |other| is_other(other) && !other.row.has_started() && is_proven(other))
    }

    /// Whether others of its target may be concerned by it: it has ended, although that may not be told yet, is cancelled, or has
    /// taken the place of older ones.
    #[must_use]
    pub fn concerns_others(&self) -> bool {
        let row = &self.command.row;
        !is_open(&self.command) || row.is_expired(self.now) || row.run.supersedes && row.has_started()
    }

    /// Whether it ran, as its status or its target tells.
    #[must_use]
    pub fn has_run(&self) -> bool {
        let command = &self.command;
        command.row.has_started() || self.found().is_some_and(|target| target.proves(command))
    }

    /// The target, if it is there.
    #[must_use]
    pub fn found(&self) -> Option<&Target> {
        if let Look::Found(target) = &self.target { Some(target) } else { None }
    }
}
