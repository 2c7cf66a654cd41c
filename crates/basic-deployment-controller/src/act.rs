//! Action → writes. The only writer.

use std::{sync::Arc, time::Duration};

use basic_deployment_controller::{
    child::Child,
    decide::Action,
    desired::Desired,
    drift::{changed_field, means_the_same, replaced_lists},
    handed::Handed,
    observed::Observed,
    revision::{self, Revision},
    status::CONDITIONS,
};
use catena_api::{BasicDeployment, keys, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DeleteParams;
use operator_kit::{
    report::{StatusAge, StepError},
    run::Requeue,
    write::{Batch, Ownership, Writer},
};
use operator_templates::Rendered;
use operator_watch::{ApiError, Cause, Failure, ObjectId, Row, WriteTarget};
use serde_json::json;

use crate::memory::Memory;

/// Time until a revision that exists is known from its watch.
const WATCH_DELAY: Duration = Duration::from_secs(1);

/// Writes children, revisions and statuses, and remembers their last states on the server.
pub struct Executor {
    writer: Writer,
    revisions: WriteTarget,
    memory: Memory,
}

impl Executor {
    pub fn new(writer: Writer, revisions: WriteTarget, memory: Memory) -> Self {
        Self { writer, revisions, memory }
    }

    /// The age of the status of a `BasicDeployment`.
    pub fn status_age(&self, deployment: &BasicDeployment) -> StatusAge {
        self.writer.status_age(ObjectId::of(deployment).uid)
    }

    /// Takes a step.
    pub async fn act(&self, observed: &Observed, action: Action) -> Result<Requeue, StepError> {
        let deployment = &*observed.deployment;
        let own = self.writer.for_object(ObjectId::of(deployment));
        match action {
            Action::Record { rendered, number } => self.record(deployment, rendered, number).await?,
            Action::RefreshOwner { children, revisions } => {
                let children = children.iter().map(|child| (observed.place(&child.kind), child.id()));
                let revisions = revisions.iter().map(|revision| (self.revisions.clone(), revision.id()));
                let refresh = async |(place, dependent): (WriteTarget, ObjectId<'_>)| {
                    own.refresh_owner::<BasicDeployment>(&place, dependent).await
                };
                let dependents = children.chain(revisions).collect();
                Batch::run(dependents, refresh, ApiError::concerns_one_object).await.all()?;
            }
            Action::Adopt(orphans) => {
                let adopt = async |orphan: Arc<Revision>| self.adopt(deployment, &orphan).await;
                Batch::run(orphans, adopt, ApiError::concerns_one_object).await.all()?;
            }
            Action::Renumber { revision, number } => {
                let mut patch = json!({"metadata": revision.id(), "revision": number});
                patch["metadata"]["annotations"] = json!({keys::NUMBERED_AT: Time(observed.now)});
                own.merge_patch(&self.revisions, &patch).await?;
            }
            Action::Create { desired, replicas } => {
                self.apply(observed, &desired, replicas, None, false).await?;
            }
            Action::Apply { child, desired, replicas, heals } => {
                self.apply(observed, &desired, replicas, Some(&child), heals).await?;
            }
            Action::Unpin => {
                let patch = json!({"metadata": {"annotations": {keys::PINNED_REVISION: null}}});
                self.writer.merge_patch_own(deployment, patch).await?;
            }
            Action::Restart { child, token } => self.restart(observed, &child, token).await?,
            Action::Scale { child, replicas, heals, .. } => {
                self.scale(observed, &child, replicas, heals).await?;
            }
            Action::Strip { child, field, patch } => {
                own.undoing(Some(&field)).merge_patch(&observed.place(&child.kind), &patch).await?;
            }
            Action::Delete(children) => {
                let delete = async |child: Arc<Child>| {
                    // Until its replicas are gone, so that ready is not reported beside them.
                    own.delete(&observed.place(&child.kind), child.id(), DeleteParams::foreground()).await
                };
                Batch::run(children, delete, ApiError::concerns_one_object).await.all()?;
            }
            Action::Prune(revisions) => {
                let delete = async |old: Arc<Revision>| {
                    own.delete(&self.revisions, old.id(), DeleteParams::default()).await
                };
                Batch::run(revisions, delete, ApiError::concerns_one_object).await.all()?;
            }
            Action::Refuse(refusal) | Action::RefuseFormer(refusal) => return Err(refusal.into()),
            Action::WriteStatus(status) => self.writer.write_status(deployment, &status, &CONDITIONS).await?,
            Action::Wait(time) => return Ok(Requeue::After(time)),
            Action::Settle => return Ok(Requeue::OnChange),
        }
        Ok(Requeue::Written)
    }

    async fn record(
        &self,
        deployment: &BasicDeployment,
        rendered: Rendered,
        number: i64,
    ) -> Result<(), StepError> {
        let own = ObjectId::of(deployment);
        let resource = &self.revisions.resource;
        let name = revision::name(own.name, own.uid, &rendered.hash);
        let revision = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": name,
                "namespace": own.namespace,
                "labels": {keys::DEPLOYMENT_UID: own.uid},
                "annotations": {keys::HASH: rendered.hash},
                "ownerReferences": [Ownership::owner_reference(deployment)],
            },
            "data": rendered.object,
            "revision": number,
        });
        match self.writer.for_object(own).create(&self.revisions, &revision).await {
            Err(error) if error.cause == Cause::AlreadyExists => {
                let on = format!("--namespace {} controllerrevision {name} --overwrite", own.namespace);
                let label = format!("kubectl label {on} {}={}", keys::DEPLOYMENT_UID, own.uid);
                let hash = format!("kubectl annotate {on} {}={}", keys::HASH, rendered.hash);
                let message = format!(
                    "ControllerRevision {name:?} exists, but is not known as a revision of this BasicDeployment: it belongs to somebody else, or somebody removed its label or annotation; restore them ({label}; {hash}), or delete it"
                );
                // A former process may have created it, and its watch may be behind.
                let failure = Failure::stalled(reason::REVISION_NAME_TAKEN, message);
                Err(Failure { is_expected: true, retry_after: Some(WATCH_DELAY), ..failure }.into())
            }
            created => {
                created?;
                Ok(())
            }
        }
    }

    /// Adds the label and the owner, and keeps all other owners. The name goes on following from the former uid.
    async fn adopt(&self, deployment: &BasicDeployment, orphan: &Revision) -> Result<(), ApiError> {
        let (own, resource) = (ObjectId::of(deployment), &self.revisions.resource);
        let mut metadata = json!(orphan.id());
        metadata["labels"] = json!({keys::DEPLOYMENT_UID: own.uid});
        metadata["annotations"] = json!({keys::MADE_FOR: orphan.made_for});
        metadata["ownerReferences"] = json!([Ownership::owner_reference(deployment)]);
        let adopted =
            json!({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata});
        self.writer.for_object(own).apply(&self.revisions, &adopted).await?;
        Ok(())
    }

    /// Hands a restart token to the child. It relies on the very state that was seen: a late write of a former leader would take
    /// a newer one back.
    async fn restart(&self, observed: &Observed, child: &Child, token: String) -> Result<(), ApiError> {
        let mut patch = json!({"metadata": child.id()});
        patch["metadata"]["resourceVersion"] = child.version.as_str().into();
        if let Some(restarted_at) = &child.kind.fields().restarted_at {
            restarted_at.set(&mut patch, token.into());
        }
        let own = self.writer.for_object(ObjectId::of(&*observed.deployment));
        own.merge_patch(&observed.place(&child.kind), &patch).await
    }

    async fn scale(
        &self,
        observed: &Observed,
        child: &Child,
        replicas: i32,
        heals: bool,
    ) -> Result<(), ApiError> {
        let (deployment, field) = (&*observed.deployment, &child.kind.fields().replicas);
        let (mut patch, mut changed) = (json!({"metadata": child.id()}), field);
        field.set(&mut patch, replicas.into());
        let handed = Handed::of(&deployment.spec, &child.kind);
        // One that the server refuses does not hold up the replicas: the next pass hands it.
        if child.replicas() == Some(replicas) {
            let desired = observed.desired.as_ref().ok().filter(|desired| desired.hash == child.hash());
            handed.set_in_patch(&mut patch, child, desired.map(|desired| &desired.object));
            changed = handed.changed_on(child).unwrap_or(field);
        }
        let undone = heals.then(|| changed.to_string());
        let own = ObjectId::of(deployment);
        let writes = self.writer.for_object(own).undoing(undone.as_deref());
        writes.merge_patch(&observed.place(&child.kind), &patch).await?;
        self.memory.scaled(own.uid, &child.uid, replicas, is_known_in(observed));
        Ok(())
    }

    async fn apply(
        &self,
        observed: &Observed,
        desired: &Desired,
        replicas: i32,
        child: Option<&Child>,
        heals: bool,
    ) -> Result<(), ApiError> {
        let (deployment, object) = (&*observed.deployment, desired.body(replicas, child));
        let own = ObjectId::of(deployment);
        let undone = child.filter(|_| heals).map(|child| {
            let field = changed_field(child, desired, observed.settled_as.as_ref());
            field.unwrap_or_else(|| "a field".to_owned())
        });
        let writes = self.writer.for_object(own).undoing(undone.as_deref());
        let place = observed.place(&desired.kind);
        let answer = writes.apply(&place, &object).await?;
        let mut seen = desired.seen_in(&answer);
        let is_settled = observed.settled_as.as_ref().is_some_and(|settled| means_the_same(settled, &seen));
        if let Some(child) = child.filter(|_| !is_settled)
            && let Some(mut lists) = replaced_lists(&desired.comparable(), &seen)
        {
            lists["metadata"] = json!(child.id());
            match self.writer.for_object(own).merged(&place, &lists).await {
                Ok(replaced) => seen = desired.seen_in(&replaced),
                // A field that is not rendered may need what was added.
                Err(error) if error.cause == Cause::Invalid => {}
                Err(error) => return Err(error),
            }
        }
        self.memory.settled(own.uid, desired, seen);
        let applied = answer["metadata"]["uid"].as_str().unwrap_or_default();
        self.memory.scaled(own.uid, applied, replicas, is_known_in(observed));
        Ok(())
    }
}

fn is_known_in(observed: &Observed) -> impl Fn(&str) -> bool {
    |uid| observed.children().any(|child| child.uid == uid)
}

#[cfg(test)]
mod tests;
