//! The possible steps.

use std::{sync::Arc, time::Duration};

use catena_api::{BasicDeploymentStatus, reason};
use operator_templates::Rendered;
use operator_watch::Failure;
use serde_json::Value;

use crate::{child::Child, desired::Desired, observed::Observed, revision::Revision, step};

/// One step for a `BasicDeployment`.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Refresh the version in the owner references of these objects.
    RefreshOwner {
        /// Children.
        children: Vec<Arc<Child>>,
        /// Revisions.
        revisions: Vec<Arc<Revision>>,
    },
    /// Store a rendering as a revision.
    Record {
        /// The rendering.
        rendered: Rendered,
        /// The revision's number.
        number: i64,
    },
    /// Take back revisions that a former `BasicDeployment` of this name has left.
    Adopt(Vec<Arc<Revision>>),
    /// Make a revision the wanted one.
    Renumber {
        /// The revision.
        revision: Arc<Revision>,
        /// Its new number.
        number: i64,
    },
    /// Create the child.
    Create {
        /// Its desired state.
        desired: Desired,
        /// The replicas that there is room for beside former children.
        replicas: i32,
    },
    /// Bring the child to its desired state: change it to another rendering, or undo somebody's change.
    Apply {
        /// The child.
        child: Arc<Child>,
        /// Its desired state.
        desired: Desired,
        /// Its replicas.
        replicas: i32,
        /// Whether somebody else has changed it, or taken its owner away.
        heals: bool,
    },
    /// Remove the pin, which holds no longer.
    Unpin,
    /// Hand the restart token to the child.
    Restart {
        /// The child.
        child: Arc<Child>,
        /// The token.
        token: String,
    },
    /// Set the replicas of a child, and the fields that are handed to it.
    Scale {
        /// The child.
        child: Arc<Child>,
        /// Its replicas.
        replicas: i32,
        /// Whether somebody else has changed them.
        heals: bool,
        /// Whether it is a former child.
        is_former: bool,
    },
    /// Remove keys that somebody else has added to maps of the template.
    Strip {
        /// The child.
        child: Arc<Child>,
        /// The first of them.
        field: String,
        /// The patch.
        patch: Value,
    },
    /// Delete children that were replaced by another one.
    Delete(Vec<Arc<Child>>),
    /// Delete revisions beyond the limit.
    Prune(Vec<Arc<Revision>>),
    /// Report that the spec cannot be followed.
    Refuse(Failure),
    /// Report that a former child cannot be changed.
    RefuseFormer(Failure),
    /// Write the status.
    WriteStatus(Box<BasicDeploymentStatus>),
    /// Reconcile again later, unless something happens before.
    Wait(Duration),
    /// Nothing is left to do.
    Settle,
}

impl Action {
    /// The step of the action: its failure holds up only the same step.
    #[must_use]
    pub fn step(&self) -> &'static str {
        match self {
            Self::RefreshOwner { .. } => step::REFRESH_OWNER,
            Self::Unpin => step::UNPIN,
            Self::Restart { .. } => step::RESTART,
            Self::Apply { heals: true, .. } => step::HEAL,
            Self::Strip { .. } => step::STRIP,
            Self::Scale { heals: true, is_former: false, .. } => step::HEAL_SCALE,
            Self::Scale { heals: true, is_former: true, .. } => step::HEAL_FORMER,
            Self::Refuse(refusal) if refusal.reason == reason::CONTRACT_BROKEN => step::READ_CHILD,
            Self::Record { .. }
            | Self::Renumber { .. }
            | Self::Create { .. }
            | Self::Apply { .. }
            | Self::Refuse(_) => step::FOLLOW,
            Self::Scale { child, replicas, is_former: false, .. } if child.replicas() == Some(*replicas) => {
                step::HAND
            }
            Self::Scale { is_former: false, .. } => step::SCALE,
            Self::Scale { is_former: true, .. } => step::SCALE_FORMER,
            Self::RefuseFormer(_) => step::READ_FORMER,
            Self::Delete(_) => step::CLEAN_UP,
            Self::Adopt(_) => step::ADOPT,
            Self::Prune(_) => step::PRUNE,
            Self::WriteStatus(_) => step::STATUS,
            Self::Wait(_) | Self::Settle => "",
        }
    }

    /// The action, unless a failure holds up its step.
    #[must_use]
    pub fn unless_held(self, observed: &Observed) -> Option<Self> {
        (!observed.backoffs.is_backing_off(self.step())).then_some(self)
    }
}
