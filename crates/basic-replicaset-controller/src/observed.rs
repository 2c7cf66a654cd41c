//! The input of a decision about a `BasicReplicaSet`, as plain data.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use catena_api::{BasicReplicaSet, PodReplacementPolicy, keys};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_kit::{report::StatusAge, run::Backoffs, write::Ownership};
use operator_templates::TemplateError;
use operator_watch::ApiError;
use pod_state::PodState;

use crate::pod::PodRow;

/// Time for which a pod that ended by itself is kept before its slot is filled again, so that a pod that always ends at
/// once is not re-created in a tight loop.
const REPLACE_DELAY: Duration = Duration::from_secs(10);
/// Number of failed slots or pods, beyond the desired number, after which a step is taken for no other one: otherwise,
/// names that are all taken would be tried forever.
pub(crate) const MAX_FAILED_ITEMS: usize = 32;
/// Age at which a set stops waiting for the garbage collector, which may not be running.
const SUCCESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The input of a decision about a `BasicReplicaSet`.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The set.
    pub set: Arc<BasicReplicaSet>,
    /// The steps that this pass may take.
    pub backoffs: Backoffs,
    /// Whether pods are unknown, so that existing ones may be missing below.
    pub is_blind: bool,
    /// The time of the observation.
    pub now: Timestamp,
    /// The revision of new pods, or the reason why there is none.
    pub revision: Result<String, TemplateError>,
    /// The revision that served last, if it is another one and pods can be made from its record.
    pub former: Option<String>,
    /// The parameters of the set that its template does not read.
    pub unread: Vec<String>,
    /// The pods that the set controls.
    pub pods: Vec<Arc<PodRow>>,
    /// The last pod that had ended by itself and was deleted for that, unless that is over.
    pub ended: Option<Arc<PodRow>>,
    /// Pods without a controller that were created from the same revision; looked up only while pods are missing.
    pub orphans: Vec<Arc<PodRow>>,
    /// Names that were taken when pods were to be created.
    pub taken: Vec<TakenName>,
    /// Orphans and pods of taken names that could not be looked up.
    pub unclear: usize,
    /// The reason why one of them could not be looked up in this pass.
    pub unanswered: Option<ApiError>,
    /// The time for which pods of a former set of this name are waited for, if there are any.
    pub succession: Option<Duration>,
    /// The age of the status.
    pub status_age: StatusAge,
}

/// A name that was taken when a pod was to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenName {
    /// The slot of the pod that was to be created.
    pub slot: u32,
    /// The name.
    pub name: String,
    /// Its holder.
    pub holder: Holder,
}

/// The holder of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The pod that was to be created itself; no watch has shown it yet.
    Own,
    /// The same without its label or its slot, so that the watch never shows it, or its slot is unknown.
    Unmarked {
        /// Its uid.
        uid: String,
    },
    /// Somebody else's pod.
    Other,
    /// It could not be looked up.
    Unclear,
}

impl Holder {
    /// Who has a name, by what the pod of that name says.
    #[must_use]
    pub fn of(found: ObjectMeta, set: &str, revision: &str, slot: u32) -> Self {
        let has = |map: &Option<BTreeMap<String, String>>, key: &str, value: &str| {
            map.as_ref().and_then(|map| map.get(key)).is_some_and(|found| found == value)
        };
        if !Ownership::is_controlled_by(&found, set) || !has(&found.annotations, keys::HASH, revision) {
            return Self::Other;
        }
        let is_marked = has(&found.labels, keys::REPLICA_SET_UID, set)
            && has(&found.annotations, keys::SLOT, &slot.to_string());
        if is_marked { Self::Own } else { Self::Unmarked { uid: found.uid.unwrap_or_default() } }
    }
}

impl Observed {
    /// The number of desired pods of the set.
    #[must_use]
    pub fn wanted(&self) -> usize {
        wanted(&self.set)
    }

    /// Whether a step failed for so many slots or pods that it will fail for another one, too.
    #[must_use]
    pub fn is_in_vain(&self, step: &str) -> bool {
        self.backoffs.backing_off_items(step).count() >= MAX_FAILED_ITEMS + self.wanted()
    }

    /// The number of pods that the set has or may have, but that are not among [`Self::pods`]: no others are created in
    /// their place.
    #[must_use]
    pub fn unseen(&self) -> usize {
        let is_shown = |uid: &str| self.pods.iter().any(|pod| &*pod.uid == uid);
        let own = self.taken.iter().filter(|taken| match &taken.holder {
            Holder::Own => true,
            // A pod that has only lost its slot is among the pods.
            Holder::Unmarked { uid } => !is_shown(uid),
            Holder::Other | Holder::Unclear => false,
        });
        self.unclear + own.count()
    }

    /// The number of terminating pods, if their end is awaited.
    #[must_use]
    pub fn awaited(&self) -> Option<usize> {
        let ending = self.pods.iter().filter(|pod| matches!(pod.state, PodState::Terminating(_)));
        self.awaits_ends().then(|| ending.count())
    }

    /// Whether a pod takes its room until it is gone.
    #[must_use]
    pub fn awaits_ends(&self) -> bool {
        self.set.spec.pod_replacement_policy == PodReplacementPolicy::TerminationComplete
    }

    /// Whether the watch is about to show another pod of the set. Failed marks and names of others have backoffs of
    /// their own.
    #[must_use]
    pub fn waits_for_a_name(&self) -> bool {
        self.taken.iter().any(|taken| taken.holder == Holder::Own)
    }

    /// Whether a pod has been ready for long enough to count as serving.
    #[must_use]
    pub fn is_available(&self, pod: &PodRow) -> bool {
        pod.is_ready() && self.ready_for(pod) >= self.min_ready()
    }

    /// The time until the next ready pod is available.
    #[must_use]
    pub fn next_available(&self) -> Option<Duration> {
        let ready = self.pods.iter().filter(|pod| pod.is_ready());
        ready
            .map(|pod| self.min_ready().saturating_sub(self.ready_for(pod)))
            .filter(|left| !left.is_zero())
            .min()
    }

    fn ready_for(&self, pod: &PodRow) -> Duration {
        pod.ready_since.map_or(Duration::ZERO, |since| self.since(since))
    }

    fn min_ready(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.set.spec.min_ready_seconds).unwrap_or(0))
    }

    /// Whether it does not matter any more that a pod ended: its successor or as many others as desired serve, or it was of another
    /// template.
    #[must_use]
    pub fn has_replaced(&self, ended: &PodRow) -> bool {
        let Ok(revision) = &self.revision else { return false };
        let is_serving = |pod: &&Arc<PodRow>| *pod.revision == **revision && self.is_available(pod);
        let mut serving = self.pods.iter().filter(is_serving);
        let are_enough = serving.clone().count() >= self.wanted();
        *ended.revision != **revision || are_enough || serving.any(|pod| pod.slot == ended.slot)
    }

    /// Whether a pod ended by itself long enough ago to be replaced.
    #[must_use]
    pub fn is_over(&self, pod: &PodRow) -> bool {
        pod.has_ended() && self.kept_for(pod).is_zero()
    }

    /// The time for which a pod that ended by itself is still kept. Where the clock of this process is behind, its lifetime
    /// counts: that is by the clocks of the API server and of its node.
    #[must_use]
    pub fn kept_for(&self, pod: &PodRow) -> Duration {
        let lived = match &pod.state {
            PodState::Finished(problem) if self.now < pod.created => {
                problem.since.duration_since(pod.created)
            }
            _ => SignedDuration::ZERO,
        };
        let lived = Duration::try_from(lived).unwrap_or_default();
        REPLACE_DELAY.saturating_sub(self.since(pod.created).max(lived))
    }

    /// The time since something.
    #[must_use]
    pub fn since(&self, then: Timestamp) -> Duration {
        Duration::try_from(self.now.duration_since(then)).unwrap_or_default()
    }
}

/// The number of desired pods of a set.
#[must_use]
pub fn wanted(set: &BasicReplicaSet) -> usize {
    usize::try_from(set.spec.replicas).unwrap_or(0)
}

/// The longest time for which a new set waits for the garbage collection of the pods of a former one of its name.
#[must_use]
pub fn succession_ends_in(set: &BasicReplicaSet, now: Timestamp) -> Option<Duration> {
    let created = set.metadata.creation_timestamp.as_ref()?.0;
    let age = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    SUCCESSION_TIMEOUT.checked_sub(age).filter(|left| !left.is_zero())
}
