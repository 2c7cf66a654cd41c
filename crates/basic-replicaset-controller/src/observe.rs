//! Caches and live reads → Observed. The only reader.

use std::sync::Arc;

use basic_replicaset_controller::{
    adoption::is_own,
    decide::proof,
    observed::{Holder, Observed, TakenName, succession_ends_in},
    pod::PodRow,
    revision::{NO_POD, former, recorded_pod},
    step,
};
use catena_api::{BasicReplicaSet, reason};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Client, discovery::ApiResource};
use operator_kit::{report::StatusAge, run::Backoffs, write::Ownership};
use operator_watch::{ApiError, Cache, Cause, Failure, Live, ObjectId};

use crate::{
    memory::{Memory, Taken},
    revisions::Revisions,
};

/// Number of concurrent live look-ups of pods.
const MAX_CONCURRENT_LOOKS: usize = 16;

/// Reads the state of a set.
pub struct Observer {
    /// For live reads.
    pub client: Client,
    /// The pods of all sets.
    pub pods: Arc<Cache<PodRow>>,
    /// What former passes have noted.
    pub memory: Memory,
    /// What pods are made from.
    pub revisions: Revisions,
}

impl Observer {
    /// Reads the state of a set.
    pub async fn observe(
        &self,
        set: Arc<BasicReplicaSet>,
        backoffs: Backoffs,
        status_age: StatusAge,
    ) -> Result<Observed, Failure> {
        // Pods that are missing in an incomplete cache would be created again.
        let problem = self.pods.watch().problem();
        let is_blind = problem.is_some();
        let is_deferred = backoffs.everything().is_some();
        if let Some(problem) = problem.filter(|_| !is_deferred) {
            let message = format!("the pods cannot be observed: {problem}");
            return Err(Failure::transient(reason::PODS_NOT_OBSERVED, message));
        }
        let (revision, unread) = self.revisions.of(&set);
        let former = former(&set, revision.as_deref().ok());
        let ObjectId { namespace, uid, .. } = ObjectId::of(&*set);
        let mut observed = Observed {
            set: set.clone(),
            backoffs,
            is_blind,
            now: Timestamp::now(),
            revision,
            former,
            unread,
            pods: self.owned(namespace, uid),
            ended: None,
            orphans: Vec::new(),
            taken: Vec::new(),
            unclear: 0,
            unanswered: None,
            succession: None,
            status_age,
        };
        // A set that is being deleted creates and adopts nothing.
        let is_leaving = set.metadata.deletion_timestamp.is_some();
        if !is_deferred && !is_leaving {
            self.look_up_names(&mut observed).await;
            if let Ok(revision) = observed.revision.clone()
                && has_too_few(&observed, None)
            {
                self.look_up_orphans(&mut observed, &revision).await?;
            }
        }
        observed.now = Timestamp::now();
        observed.ended = self.memory.ended(uid, |ended| observed.has_replaced(ended));
        // The record is read only when pods may be made from it, since that takes longer than the rest of a pass.
        if let Some(former) = &observed.former
            && proof::may_make_former(&observed)
            && recorded_pod(&set, former, NO_POD).is_none()
        {
            observed.former = None;
        }
        let is_former = |pod: &PodRow| {
            let is_former = pod.owner.as_ref().is_some_and(|owner| owner.is_former(&set));
            is_former && &*pod.namespace == namespace && pod.counts()
        };
        // The search looks at every pod of the cluster, and matters only before a creation.
        let is_short = has_too_few(&observed, observed.revision.as_deref().ok());
        observed.succession = succession_ends_in(&set, observed.now)
            .filter(|_| is_short && !self.pods.filter(is_former).is_empty());
        Ok(observed)
    }

    /// The pods of the set with this uid. An orphan is indexed by its revision, which can be any text.
    fn owned(&self, namespace: &str, uid: &str) -> Vec<Arc<PodRow>> {
        let mut pods = self.pods.by_index(namespace, uid);
        pods.retain(|pod| pod.owner.is_some());
        pods
    }

    /// The pods of the set that take room in a quota.
    pub fn pods_that_take_room(&self, set: &BasicReplicaSet) -> Vec<Arc<PodRow>> {
        let ObjectId { namespace, uid, .. } = ObjectId::of(set);
        let mut pods = self.owned(namespace, uid);
        pods.retain(|pod| !pod.has_ended());
        pods
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, uid: &str) {
        self.revisions.forget(uid);
        self.memory.forget(uid);
    }

    /// The holders of the names that were taken when pods were to be created. A failed look-up is counted, and stops no other.
    async fn look_up_names(&self, observed: &mut Observed) {
        let set = observed.set.clone();
        let ObjectId { namespace, uid, .. } = ObjectId::of(&*set);
        let may_look = !observed.backoffs.is_backing_off(step::LOOK_UP);
        let is_shown = |slot| observed.pods.iter().any(|pod| pod.slot == Some(slot));
        let is_made = |revision: &String| {
            observed.revision.as_ref().ok() == Some(revision) || observed.former.as_ref() == Some(revision)
        };
        let names = self.memory.names_taken(uid).into_iter();
        let (open, settled): (Vec<_>, Vec<_>) =
            names.partition(|(slot, taken)| is_made(&taken.revision) && !is_shown(*slot));
        for (slot, _) in settled {
            self.memory.name_settled(uid, slot);
        }
        let looked_up = stream::iter(open).map(async |(slot, Taken { name, revision })| {
            let holder = if may_look {
                let found = self.metadata(namespace, &name).await;
                found.map(|found| found.map(|found| Holder::of(found, uid, &revision, slot)))
            } else {
                Ok(Some(Holder::Unclear))
            };
            (slot, name, holder)
        });
        let looked_up: Vec<_> = looked_up.buffer_unordered(MAX_CONCURRENT_LOOKS).collect().await;
        for (slot, name, holder) in looked_up {
            let holder = match holder {
                Ok(Some(holder)) => holder,
                // It is free by now.
                Ok(None) => {
                    self.memory.name_settled(uid, slot);
                    continue;
                }
                Err(error) => {
                    observed.unanswered = Some(error);
                    Holder::Unclear
                }
            };
            observed.unclear += usize::from(holder == Holder::Unclear);
            observed.taken.push(TakenName { slot, name, holder });
        }
    }

    /// The pods without a controller that may belong to the set. A failed look-up is counted, and stops no other.
    async fn look_up_orphans(&self, observed: &mut Observed, revision: &str) -> Result<(), ApiError> {
        let set = observed.set.clone();
        let ObjectId { namespace, uid, .. } = ObjectId::of(&*set);
        let mut candidates = self.pods.by_index(namespace, revision);
        candidates.retain(|pod| pod.owner.is_none() && pod.counts() && !self.memory.is_known_other(uid, pod));
        if observed.backoffs.is_backing_off(step::LOOK_UP) {
            observed.unclear += candidates.len();
            return Ok(());
        }
        let settings = self.revisions.settings.current();
        let looked_up = stream::iter(candidates)
            .map(async |pod| (self.live(&pod).await, pod))
            .buffer_unordered(MAX_CONCURRENT_LOOKS);
        let looked_up: Vec<_> = looked_up.collect().await;
        for (live, pod) in looked_up {
            match live {
                Ok(Some(live)) if is_own(&live, &set, revision, &settings.templates) => {
                    observed.orphans.push(pod);
                }
                Ok(_) => self.memory.is_other(uid, &pod),
                Err(error) => {
                    observed.unclear += 1;
                    observed.unanswered = Some(error);
                }
            }
        }
        if observed.orphans.is_empty() {
            return Ok(());
        }
        match Ownership::ensure_exists(&self.client, &*set).await {
            Err(error) if error.cause != Cause::NotFound => {
                observed.unclear += std::mem::take(&mut observed.orphans).len();
                observed.unanswered = Some(error);
                Ok(())
            }
            ended => ended,
        }
    }

    /// The present metadata of a pod; `None` if it is gone, or its name belongs to another one.
    async fn live(&self, pod: &PodRow) -> Result<Option<ObjectMeta>, ApiError> {
        let found = self.metadata(&pod.namespace, &pod.name).await?;
        Ok(found.filter(|found| found.uid.as_deref() == Some(&pod.uid)))
    }

    async fn metadata(&self, namespace: &str, name: &str) -> Result<Option<ObjectMeta>, ApiError> {
        Live::metadata(&self.client, &ApiResource::erase::<Pod>(&()), namespace, name).await
    }
}

/// Whether a set has fewer pods than it wants; with a revision, only those of it are counted.
fn has_too_few(observed: &Observed, revision: Option<&str>) -> bool {
    let counts =
        |pod: &&Arc<PodRow>| pod.counts() && revision.is_none_or(|revision| *pod.revision == *revision);
    observed.pods.iter().filter(counts).count() < observed.wanted()
}
