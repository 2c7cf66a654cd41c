//! What a decision about a `BasicReplicaSet` is made from, as plain data.

use std::{sync::Arc, time::Duration};

use catena_api::BasicReplicaSet;
use jiff::Timestamp;
use operator_kit::{render::TemplateError, report::StatusAge, run::Attempt, watch::ReadError};

use crate::pod::{PodRow, PodState};

/// How long a pod that ended by itself is kept before its place is filled again, so that a pod that always
/// ends at once is not made again in a tight loop.
const REPLACE_DELAY: Duration = Duration::from_secs(10);
/// Places or pods of a step that fail, beyond the wanted number, before the step is taken for no other: names that
/// are all taken would be tried for ever.
pub(crate) const MAX_FAILED_ITEMS: usize = 32;
/// How old a set is when it waits no longer for the garbage collector, which may not run.
const SUCCESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// What a decision about a `BasicReplicaSet` is made from.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The set.
    pub set: Arc<BasicReplicaSet>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// Whether pods are not known: what is there may be missing below.
    pub is_blind: bool,
    /// When it was observed.
    pub now: Timestamp,
    /// What pods are to be made from, or why there is nothing.
    pub revision: Result<String, TemplateError>,
    /// The pods that the set controls.
    pub pods: Vec<Arc<PodRow>>,
    /// Pods without a controller that were made from the very same, and still run it; looked for only while pods are
    /// missing.
    pub orphans: Vec<Arc<PodRow>>,
    /// Names that were taken when pods were to be created.
    pub taken: Vec<TakenName>,
    /// Orphans and pods of taken names that could not be looked up.
    pub unclear: usize,
    /// Why one of them could not be looked up in this pass.
    pub unanswered: Option<ReadError>,
    /// Pods of a former set of this name, as long as the garbage collector may not have come to them.
    pub former: Vec<Arc<PodRow>>,
    /// How long the status has been as it is.
    pub status_age: StatusAge,
}

/// A name that was taken when a pod was to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenName {
    /// The place that the pod was to fill.
    pub slot: u32,
    /// The name.
    pub name: String,
    /// Whose it is.
    pub holder: Holder,
}

/// Who has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The very pod that was to be created; no watch has shown it yet.
    Own,
    /// The same without its label or its place, so that the watch never shows it or nobody knows which place it fills.
    Unmarked {
        /// Its uid.
        uid: String,
    },
    /// Somebody else's pod.
    Other,
    /// Nobody could look.
    Unclear,
}

impl Observed {
    /// How many pods the set is to have.
    #[must_use]
    pub fn wanted(&self) -> usize {
        wanted(&self.set)
    }

    /// Whether a step failed for so many places or pods that it will not do for another one either.
    #[must_use]
    pub fn is_in_vain(&self, step: &str) -> bool {
        self.attempt.held_items(step) >= MAX_FAILED_ITEMS + self.wanted()
    }

    /// Pods that the set has or may have, and that are not among [`Self::pods`]: no others are made in their place.
    #[must_use]
    pub fn unseen(&self) -> usize {
        let is_shown = |uid: &str| self.pods.iter().any(|pod| &*pod.uid == uid);
        let own = self.taken.iter().filter(|taken| match &taken.holder {
            Holder::Own => true,
            // One that has only lost its place is among the pods.
            Holder::Unmarked { uid } => !is_shown(uid),
            Holder::Other | Holder::Unclear => false,
        });
        self.unclear + own.count()
    }

    /// Whether the watch is about to show a pod of the set's own. Marks that fail have their backoff, and names of
    /// others theirs.
    #[must_use]
    pub fn waits_for_a_name(&self) -> bool {
        self.taken.iter().any(|taken| taken.holder == Holder::Own)
    }

    /// Whether a pod ended by itself long enough ago to be replaced.
    #[must_use]
    pub fn is_over(&self, pod: &PodRow) -> bool {
        matches!(pod.state, PodState::Finished(_)) && self.kept_for(pod).is_zero()
    }

    /// How long a pod that ended by itself is still kept.
    #[must_use]
    pub fn kept_for(&self, pod: &PodRow) -> Duration {
        REPLACE_DELAY.saturating_sub(self.since(pod.created))
    }

    /// How long ago something was.
    #[must_use]
    pub fn since(&self, then: Timestamp) -> Duration {
        Duration::try_from(self.now.duration_since(then)).unwrap_or_default()
    }
}

/// How many pods a set is to have.
#[must_use]
pub fn wanted(set: &BasicReplicaSet) -> usize {
    usize::try_from(set.spec.replicas).unwrap_or(0)
}

/// How long a new set waits at most for what is to become of the pods of a former one of its name.
#[must_use]
pub fn succession_ends_in(set: &BasicReplicaSet, now: Timestamp) -> Option<Duration> {
    let created = set.metadata.creation_timestamp.as_ref()?.0;
    let age = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    SUCCESSION_TIMEOUT.checked_sub(age).filter(|left| !left.is_zero())
}
