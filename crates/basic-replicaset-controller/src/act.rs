//! Action → writes. The only writer.

use std::sync::Arc;

use basic_replicaset_controller::{
    adoption::Origin, decide::Action, observed::TakenName, pod::PodRow, revision::subject, status::CONDITIONS,
};
use catena_api::{BasicReplicaSet, keys, reason};
use kube::api::DeleteParams;
use operator_kit::{
    report::{Failures, StatusAge, StepError},
    run::Requeue,
    write::{Batch, Ownership, Writer},
};
use operator_watch::{ApiError, Cause, Failure, ObjectId, Row, WriteTarget};
use serde_json::{Value, json};

use crate::{
    memory::{Memory, Taken},
    revisions::Revisions,
};

/// Number of characters of the hash in the label that tells revisions apart: a whole hash is too long for a label.
const LABEL_LENGTH: usize = 10;

/// Takes steps.
pub struct Executor {
    /// The only way to write.
    pub writer: Writer,
    /// What it notes for later passes.
    pub memory: Memory,
    /// What pods are made from.
    pub revisions: Revisions,
    /// The kind of pods, and the watch in which its writes appear.
    pub pods: WriteTarget,
}

impl Executor {
    /// The age of the status of a set.
    pub fn status_age(&self, set: &BasicReplicaSet) -> StatusAge {
        self.writer.status_age(ObjectId::of(set).uid)
    }

    /// Takes a step.
    pub async fn act(&self, set: &BasicReplicaSet, action: Action) -> Result<Requeue, Failures> {
        match action {
            Action::Mark { name, uid, slot } => {
                self.mark(set, &name, &uid, slot).await?;
                self.memory.name_settled(ObjectId::of(set).uid, slot);
                Ok(Requeue::Written)
            }
            Action::PassOver(names) => self.pass_over(set, names),
            Action::Create { revision, slots } | Action::Recreate { revision, slots } => {
                let create = |slot| self.create(set, &revision, slot);
                let mut batch = Batch::run(slots, create, is_for_its_name).await;
                let tried = batch.failed.len();
                batch.failed.retain(|(slot, error)| !self.is_taken(set, &revision, *slot, error));
                let has_taken = batch.failed.len() < tried;
                by_item(batch, u32::to_string, is_for_its_name)?;
                // The next pass looks up their holders.
                Ok(if has_taken { Requeue::Now } else { Requeue::Written })
            }
            Action::Delete(pods) => {
                let ended = pods.iter().filter(|pod| pod.has_ended());
                if let Some(first) = ended.min_by_key(|pod| (pod.slot, pod.name.clone())) {
                    self.memory.has_ended(ObjectId::of(set).uid, first.clone());
                }
                each(pods, |pod| self.delete(set, pod)).await
            }
            Action::Adopt(pods) => each(pods, |pod| self.adopt(set, pod)).await,
            Action::RefreshOwner(pods) => each(pods, |pod| self.refresh_owner(set, pod)).await,
            Action::GiveUp(error) => Err(error.into()),
            Action::Refuse(error) => Err(StepError::from(error).into()),
            Action::WriteStatus(mut status) => {
                let recorded = set.status.as_ref().and_then(|status| status.last_served.as_ref());
                if let Some(served) = &status.last_served
                    && recorded != Some(served)
                {
                    let record = self.revisions.record(set, &served.revision);
                    status.last_served = record.or_else(|| recorded.cloned());
                }
                self.writer.write_status(set, &status, &CONDITIONS).await?;
                Ok(Requeue::Written)
            }
            Action::Wait(time) => Ok(Requeue::After(time)),
            Action::Settle => Ok(Requeue::OnChange),
        }
    }

    async fn create(&self, set: &BasicReplicaSet, revision: &str, slot: u32) -> Result<(), StepError> {
        let (own, slot) = (ObjectId::of(set), slot.to_string());
        // A repeated create, after a crash or with a stale cache, meets its own pod.
        let suffix = Origin { set: own.uid, revision, slot: &slot }.suffix();
        let make = || -> Result<Value, StepError> {
            let mut pod = self.revisions.pod(set, revision, &suffix)?;
            let revision_label = &self.revisions.settings.current().revision_label;
            let metadata = &mut pod["metadata"];
            metadata["labels"][revision_label] =
                revision.chars().take(LABEL_LENGTH).collect::<String>().into();
            metadata["labels"][keys::REPLICA_SET_UID] = own.uid.into();
            metadata["annotations"][keys::HASH] = revision.into();
            metadata["annotations"][keys::SLOT] = slot.as_str().into();
            metadata["ownerReferences"] = json!([Ownership::owner_reference(set)]);
            Ok(pod)
        };
        let created = self.writer.for_object(own).create_with(&self.pods, make).await;
        // One that served last is made from its record, and not from the present template.
        let is_present = || self.revisions.of(set).0.is_ok_and(|present| present == revision);
        created.map_err(|error| match error {
            StepError::Api(error) if is_present() => {
                let templates = &self.revisions.settings.current().templates;
                Writer::with_source(
                    error,
                    templates,
                    &set.spec.template,
                    &subject(set, &suffix),
                    ("v1", "Pod"),
                )
                .into()
            }
            error => error,
        })
    }

    /// Records a taken name, which belongs to our own pod from an earlier try or to somebody else's.
    fn is_taken(&self, set: &BasicReplicaSet, revision: &str, slot: u32, error: &StepError) -> bool {
        let StepError::Api(ApiError { object, cause: Cause::AlreadyExists, .. }) = error else {
            return false;
        };
        let taken = Taken { name: object.name.clone(), revision: revision.to_owned() };
        self.memory.name_taken(ObjectId::of(set).uid, slot, taken);
        true
    }

    /// Reports names that belong to somebody else. Each holds up only its own slot.
    fn pass_over(&self, set: &BasicReplicaSet, names: Vec<TakenName>) -> Result<Requeue, Failures> {
        let failed = names.into_iter().map(|TakenName { slot, name, .. }| {
            self.memory.name_settled(ObjectId::of(set).uid, slot);
            let message = format!(
                "the pod name {name:?} is taken by another pod, so that its slot is skipped; delete that pod, or change the name in the template"
            );
            (slot, Failure::transient(reason::POD_NAME_TAKEN, message).into())
        });
        by_item(Batch { done: 0, failed: failed.collect() }, u32::to_string, is_for_its_name)?;
        Ok(Requeue::Written)
    }

    /// Sets the label on a pod without which its watch does not show it, and its slot. Merged, because an apply would remove
    /// the owner that an adoption has applied.
    async fn mark(&self, set: &BasicReplicaSet, name: &str, of: &str, slot: u32) -> Result<(), StepError> {
        let metadata = json!({
            "name": name, "namespace": set.metadata.namespace, "uid": of,
            "labels": {keys::REPLICA_SET_UID: ObjectId::of(set).uid},
            "annotations": {keys::SLOT: slot.to_string()},
        });
        let patch = json!({"metadata": metadata});
        Ok(self.writer.for_object(ObjectId::of(set)).merge_patch(&self.pods, &patch).await?)
    }

    /// Adds the label and the owner, and keeps all others.
    async fn adopt(&self, set: &BasicReplicaSet, pod: Arc<PodRow>) -> Result<(), StepError> {
        let mut metadata = json!(pod.id());
        metadata["labels"] = json!({keys::REPLICA_SET_UID: ObjectId::of(set).uid});
        metadata["ownerReferences"] = json!([Ownership::owner_reference(set)]);
        let patch = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
        self.writer.for_object(ObjectId::of(set)).apply(&self.pods, &patch).await?;
        Ok(())
    }

    async fn refresh_owner(&self, set: &BasicReplicaSet, pod: Arc<PodRow>) -> Result<(), StepError> {
        let own = self.writer.for_object(ObjectId::of(set));
        Ok(own.refresh_owner::<BasicReplicaSet>(&self.pods, pod.id()).await?)
    }

    async fn delete(&self, set: &BasicReplicaSet, pod: Arc<PodRow>) -> Result<(), StepError> {
        let own = self.writer.for_object(ObjectId::of(set));
        own.delete(&self.pods, pod.id(), DeleteParams::default()).await.map_err(|error| {
            if error.is_refusal() {
                let message = format!(
                    "the pod {:?} cannot be deleted: {}; remove the obstacle, or delete the pod yourself",
                    error.object.name, error.message
                );
                return Failure::transient(reason::DELETE_REFUSED, message).into();
            }
            error.into()
        })
    }
}

/// Whether a pod could not be created only because of its name.
fn is_for_its_name(error: &StepError) -> bool {
    match error {
        StepError::Api(error) => error.cause == Cause::AlreadyExists || error.is_stale(),
        StepError::Failed(failure) => failure.reason == reason::POD_NAME_TAKEN,
    }
}

/// Whether a pod could not be changed or deleted for a reason that may concern it alone.
fn is_for_its_pod(error: &StepError) -> bool {
    match error {
        StepError::Api(error) => error.concerns_one_object(),
        StepError::Failed(failure) => failure.reason == reason::DELETE_REFUSED,
    }
}

/// Writes to each pod. A failure for a reason of its own holds up only its pod.
async fn each<F>(pods: Vec<Arc<PodRow>>, write: impl Fn(Arc<PodRow>) -> F) -> Result<Requeue, Failures>
where
    F: Future<Output = Result<(), StepError>>,
{
    let batch = Batch::run(pods, write, is_for_its_pod).await;
    by_item(batch, |pod| pod.uid.to_string(), is_for_its_pod)?;
    Ok(Requeue::Written)
}

/// Holds up single items: an item that failed for a reason of its own is held up under its name, and a failure that would
/// affect all others holds up the whole step.
fn by_item<T>(
    batch: Batch<T, StepError>,
    name: impl Fn(&T) -> String,
    is_its_own: impl Fn(&StepError) -> bool,
) -> Result<(), Failures> {
    if batch.failed.is_empty() {
        return Ok(());
    }
    let failure = |(item, error): (T, StepError)| {
        let item = is_its_own(&error).then(|| name(&item));
        Failure { item, ..error.into() }
    };
    let parts = batch.failed.into_iter().map(failure).collect();
    Err(Failures { parts, has_progressed: batch.done > 0 })
}

#[cfg(test)]
mod tests;
