//! The input of a decision about a `BasicDeployment`, as plain data.

use std::{collections::HashMap, sync::Arc, time::Duration};

use catena_api::{BasicDeployment, BlockedBy, Pin, PodReplacementPolicy::TerminationComplete, keys};
use jiff::Timestamp;
use operator_kit::{report::StatusAge, run::Backoffs};
use operator_templates::Rendered;
use operator_watch::{Failure, WriteTarget};
use serde_json::Value;

use crate::{
    child::Child, child_kind::ChildKind, desired::Desired, drift::changed_field, revision::Revision, step,
    token,
};

/// The input of a decision about a `BasicDeployment`.
#[derive(Clone)]
pub struct Observed {
    /// The `BasicDeployment`.
    pub deployment: Arc<BasicDeployment>,
    /// The steps that this pass may take.
    pub backoffs: Backoffs,
    /// Whether children and revisions are unknown, so that existing ones may be missing below.
    pub is_blind: bool,
    /// The time of the observation.
    pub now: Timestamp,
    /// The kinds of children.
    pub kinds: Vec<ListedKind>,
    /// The rendering of spec and template, or the reason why there is none.
    pub rendered: Result<Rendered, Failure>,
    /// The parameters that the template does not read.
    pub unread: Vec<String>,
    /// The rollback that holds the child on its revision.
    pub pin: Option<Pin>,
    /// The refusal to make another child, while the last one may still run and is of a kind that is no longer listed.
    pub unlisted: Option<Failure>,
    /// The desired child, or the reason why there is none.
    pub desired: Result<Desired, Failure>,
    /// The object that has the child's name.
    pub child: Found,
    /// The last look for the pod that keeps the child from serving.
    pub look: Option<Look>,
    /// Children with other names or of other kinds, from former renderings.
    pub others: Vec<Arc<Child>>,
    /// The revisions, the oldest first.
    pub revisions: Vec<Arc<Revision>>,
    /// The revisions that a former `BasicDeployment` of this name has left, and that may be adopted now.
    pub orphans: Vec<Arc<Revision>>,
    /// The state after the last apply of this hash, if the server changed the applied object.
    pub settled_as: Option<Value>,
    /// The last replicas that were set on each child, by its uid.
    pub given_replicas: HashMap<String, i32>,
    /// The time since the last progress.
    pub since_progress: Duration,
    /// The time for which the child has not reported on its present spec.
    pub behind_for: Duration,
    /// The age of the status.
    pub status_age: StatusAge,
}

/// A configured kind of children.
#[derive(Clone, Debug)]
pub struct ListedKind {
    /// The kind.
    pub kind: Arc<ChildKind>,
    /// Its watch.
    pub watched: WriteTarget,
}

/// The object that has the child's name.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// The child.
    Ours(Arc<Child>),
    /// An object without a controller.
    Orphan(Arc<Child>),
    /// A child of a former `BasicDeployment` of this name, which the garbage collector will delete.
    Leaving(Arc<Child>),
    /// An object that somebody else controls.
    Foreign(Arc<Child>),
}

/// The last look for the pod that keeps the child from serving.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// The time since.
    pub age: Duration,
    /// The pod, if there is one, or why the pods are unknown.
    pub found: Result<Option<BlockedBy>, String>,
}

impl Observed {
    /// The failure that holds up everything.
    #[must_use]
    pub fn held_up(&self) -> Option<&Failure> {
        self.backoffs.everything()
    }

    /// The failure that keeps the child from its desired state. The cure of a breach of the contract is seen before the next try.
    #[must_use]
    pub fn failure_about_child(&self) -> Option<&Failure> {
        let is_broken = || self.child.ours().is_some_and(|child| !child.is_readable());
        let told = |step| self.backoffs.step_failure(step).filter(|failure| !failure.is_expected);
        self.held_up()
            .or_else(|| told(step::READ_CHILD).filter(|_| is_broken()))
            .or_else(|| told(step::FOLLOW))
            .or_else(|| told(step::RESTART))
            .or_else(|| told(step::SCALE))
            .or_else(|| told(step::HAND))
            .or_else(|| self.failure_to_heal())
    }

    /// The failure to undo a change of the wanted child by somebody else.
    #[must_use]
    pub fn failure_to_heal(&self) -> Option<&Failure> {
        let steps = [step::HEAL, step::STRIP, step::HEAL_SCALE].into_iter();
        let mut failures = steps.filter_map(|step| self.backoffs.step_failure(step));
        failures.find(|failure| !failure.is_expected)
    }

    /// Whether a pin is recorded that holds nothing.
    #[must_use]
    pub fn has_spent_pin(&self) -> bool {
        let annotations = self.deployment.metadata.annotations.as_ref();
        self.pin.is_none() && annotations.is_some_and(|all| all.contains_key(keys::PINNED_REVISION))
    }

    /// Whether a child's report is about the wanted rendering and restart token.
    #[must_use]
    pub fn is_about_wanted(&self, child: &Child) -> bool {
        let is_wanted = self.wanted_hash() == Some(child.hash());
        is_wanted && child.is_current() && self.token_for(child).is_none()
    }

    /// The restart token, if a child is to have it and does not. A kind without one replaces nothing, and a later one stays: the
    /// own one comes from a backup then.
    #[must_use]
    pub fn token_for(&self, child: &Child) -> Option<&str> {
        let token = self.deployment.spec.restarted_at.as_deref()?;
        let has_field = child.kind.fields().restarted_at.is_some();
        let is_new = |kept: &str| kept != token && !token::is_later(kept, token, self.now);
        (has_field && child.restarted_at().is_none_or(is_new)).then_some(token)
    }

    /// All children, the wanted one first.
    pub fn children(&self) -> impl Iterator<Item = &Arc<Child>> {
        self.child.ours().into_iter().chain(&self.others)
    }

    /// Former children, which serve until the child does.
    pub fn former_children(&self) -> impl Iterator<Item = &Arc<Child>> {
        self.others.iter().filter(|other| !other.is_deleting)
    }

    /// Whether all desired replicas serve the desired rendering, and no others serve beside them.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let is_alone = self.leftovers().chain(self.awaited()).next().is_none();
        self.is_served() && is_alone && self.changed_in_pause().is_none()
    }

    /// The children with replicas whose end is awaited, or may have to be.
    pub fn awaited(&self) -> impl Iterator<Item = &Arc<Child>> {
        let is_asked = self.deployment.spec.pod_replacement_policy == Some(TerminationComplete);
        self.children().filter(move |child| is_asked && child.ending() != Some(0))
    }

    /// Former children that have not gone, or whose replicas serve, or may serve, until their deletion is complete.
    pub fn leftovers(&self) -> impl Iterator<Item = &Arc<Child>> {
        self.others
            .iter()
            .filter(|other| !other.is_deleting || other.outputs.active > 0 || !other.is_readable())
    }

    /// Whether somebody has paused the rollout: in the `BasicDeployment`, or in the child.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.deployment.spec.paused || self.child.ours().is_some_and(|child| child.paused().is_some())
    }

    /// Whether all desired replicas serve the desired rendering, so that former children may go.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let (Some(child), Ok(desired)) = (self.child.ours(), &self.desired) else { return false };
        self.failure_about_child().is_none() && child.hash() == desired.hash && self.serves(child)
    }

    /// The field of the child that somebody has changed while a pause keeps it from being undone. The server stores some
    /// values in another form than they are rendered, so that nothing is known without that form.
    #[must_use]
    pub fn changed_in_pause(&self) -> Option<String> {
        let (child, desired) = (self.child.ours()?, self.desired.as_ref().ok()?);
        let settled = self.settled_as.as_ref().filter(|_| self.deployment.spec.paused)?;
        if child.hash() == desired.hash { changed_field(child, desired, Some(settled)) } else { None }
    }

    /// Whether all desired replicas of a child serve its present rendering.
    #[must_use]
    pub fn serves(&self, child: &Child) -> bool {
        let (outputs, wanted) = (&child.outputs, self.deployment.spec.replicas);
        !child.is_deleting
            && self.token_for(child).is_none()
            && child.replicas() == Some(wanted)
            && child.is_current()
            && outputs.ready
            && outputs.available >= wanted
            && outputs.updated.is_none_or(|updated| updated >= wanted)
    }

    /// The kind and watch of an object of one of the kinds of children.
    #[must_use]
    pub fn place(&self, kind: &ChildKind) -> WriteTarget {
        let listed = self.kinds.iter().find(|listed| *listed.kind == *kind);
        listed.map_or_else(|| WriteTarget::unwatched(kind.api_resource()), |listed| listed.watched.clone())
    }

    /// Whether children of a kind are seen, whatever its API version.
    #[must_use]
    pub fn lists(&self, (api_version, kind): &(String, String)) -> bool {
        self.kinds.iter().any(|listed| listed.kind.is((api_version, kind)))
    }

    /// The hash of the desired rendering.
    #[must_use]
    pub fn wanted_hash(&self) -> Option<&str> {
        match &self.desired {
            Ok(desired) => Some(&desired.hash),
            Err(_) => self.child.ours().map(|child| child.hash()),
        }
    }
}

impl Found {
    /// The child, if it exists and is ours.
    #[must_use]
    pub fn ours(&self) -> Option<&Arc<Child>> {
        match self {
            Self::Ours(child) => Some(child),
            _ => None,
        }
    }
}
