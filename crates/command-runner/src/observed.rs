//! The input of a decision about a command, as plain data.

use std::{collections::HashSet, sync::Arc, time::Duration};

use catena_api::command::RecentCommands;
use jiff::Timestamp;
use kube::discovery::ApiResource;
use operator_kit::run::Backoffs;
use operator_watch::ObjectId;
use serde_json::Value;

use crate::{
    command::{Command, has_started},
    line::{concerned, is_open, is_same},
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
    /// The uids of those of its target whose read or patch the API server refused, and that have not run since.
    pub refused: HashSet<Box<str>>,
    /// The ids of the kinds of its line whose definitions have a status for a run: of others, the author of a command can write it.
    pub with_status: HashSet<Arc<str>>,
    /// Whether this process knows that it ran, by a record that may be lost since.
    pub was_proven: bool,
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
}

impl Observed {
    /// Whether the target has to be looked at.
    #[must_use]
    pub fn needs_target(&self) -> bool {
        let row = &self.command.row;
        let is_concerned =
            concerned(&self.line, None, self.now).any(|command| is_same(command, &self.command));
        row.target_id().is_some() && (is_concerned || self.was_proven || row.is_expired(self.now))
    }

    /// Replaces the command by what the API server shows now. Bound to another target, it has been observed with none.
    pub fn is_shown_as(&mut self, live: Arc<Command>) {
        if live.row.owner != self.command.row.owner {
            (self.target, self.line) = (Look::None, Vec::new());
        }
        self.command = live;
    }

    /// The commands that run on the target, as it proves or their statuses say. Either may be lost later; and where an older one was
    /// bound since, it is the turn of none of them, so that each has to be told.
    pub fn running(&self) -> impl Iterator<Item = &Arc<Command>> {
        let has_run = |command: &Command| has_started(&command.row.status) || self.proves(command);
        self.line.iter().filter(move |command| is_open(command) && has_run(command))
    }

    /// Whether others of its target may be concerned by it: it has ended, although that may not be told yet, is cancelled, or has
    /// taken the place of older ones.
    #[must_use]
    pub fn concerns_others(&self) -> bool {
        let row = &self.command.row;
        !is_open(&self.command) || row.is_expired(self.now) || row.run.supersedes && row.has_started()
    }

    /// Whether it ran, as one of its reports says, or the proof on its target.
    #[must_use]
    pub fn has_run(&self) -> bool {
        self.command.row.has_started() || self.is_proven()
    }

    /// Whether its target proves that it ran, or did so before.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.was_proven || self.proves(&self.command)
    }

    /// Whether its target has the proof that a command ran.
    #[must_use]
    pub fn proves(&self, command: &Command) -> bool {
        self.found().is_some_and(|target| target.ran.has(ObjectId::of(command).uid))
    }

    /// The target, if it is there.
    #[must_use]
    pub fn found(&self) -> Option<&Target> {
        if let Look::Found(target) = &self.target { Some(target) } else { None }
    }
}
