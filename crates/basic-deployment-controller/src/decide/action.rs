//! What can be done in one step.

use std::{sync::Arc, time::Duration};

use catena_api::{BasicDeploymentStatus, CommandStatus};
use operator_kit::render::Rendered;

use crate::{
    child::Child,
    command::Command,
    contest::Additions,
    desired::Desired,
    error::Refusal,
    revision::{Rejects, Revision},
    step,
};

/// One step for a `BasicDeployment`.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Store a rendering as a revision.
    Record {
        /// What was rendered.
        rendered: Rendered,
        /// The revision's number.
        number: i64,
    },
    /// Mark what has a revision's name as that revision again: somebody took its label, or its hash.
    Reclaim {
        /// The revision's name.
        name: String,
        /// Its uid.
        uid: String,
        /// The hash of what it stores.
        hash: String,
        /// Its number.
        number: i64,
    },
    /// Make a revision the one that is wanted.
    Renumber {
        /// The revision.
        revision: Arc<Revision>,
        /// Its new number.
        number: i64,
        /// What is recorded on it of a rollback.
        rejects: Rejects,
    },
    /// Create the child.
    Create(Desired),
    /// Make the child what it is to be: adopt it, change it to another rendering, or undo what somebody changed.
    Apply {
        /// The child.
        child: Arc<Child>,
        /// What it is to be.
        desired: Desired,
        /// Whether its rendering is the same as before.
        heals: bool,
    },
    /// Record a restart on the child, and set its restart token.
    Restart {
        /// The child.
        child: Arc<Child>,
        /// The command.
        command: Arc<Command>,
        /// The token; `None` when the child's own is new enough.
        token: Option<String>,
    },
    /// Set the child's replicas.
    Scale {
        /// The child.
        child: Arc<Child>,
        /// Whether somebody else has changed them.
        heals: bool,
    },
    /// Set the replicas of a child of an earlier name.
    ScaleFormer {
        /// The child.
        child: Arc<Child>,
        /// Whether somebody else has changed them.
        heals: bool,
    },
    /// Take away what somebody else has added to maps that are the template's.
    Strip {
        /// The child.
        child: Arc<Child>,
        /// The keys.
        additions: Vec<Additions>,
    },
    /// Delete children that others took over from.
    Delete(Vec<Arc<Child>>),
    /// Delete revisions beyond the limit.
    Prune(Vec<Arc<Revision>>),
    /// Write the statuses of commands.
    Tell(Vec<(Arc<Command>, CommandStatus)>),
    /// Report that it would not do what was asked for.
    Refuse(Refusal),
    /// Write the status.
    WriteStatus(Box<BasicDeploymentStatus>),
    /// Come back later, when nothing happened before.
    Wait(Duration),
    /// Nothing is left to do.
    Settle,
}

impl Action {
    /// The step that it is; an empty one where a failure holds up everything.
    #[must_use]
    pub fn step(&self) -> &'static str {
        match self {
            Self::ScaleFormer { .. } => step::SCALE_FORMER,
            Self::Tell(_) => step::TELL,
            Self::WriteStatus(_) => step::STATUS,
            _ => "",
        }
    }
}
