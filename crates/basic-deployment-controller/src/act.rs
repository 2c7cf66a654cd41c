//! Action → writes. The only writer.

use std::sync::Arc;

use basic_deployment_controller::{
    child::Child,
    command::{Command, REPORTED},
    contest::{Additions, changed_field},
    decide::Action,
    desired::Desired,
    error::Error,
    observed::{Observed, WatchedResource, WatchedResources},
    revision::{self, Rejects, Revision},
    status::CONDITIONS,
    undone::Part,
};
use catena_api::{BasicDeployment, CommandStatus, keys};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_kit::{
    render::Rendered,
    report::StatusAge,
    run::Next,
    watch::Watermark,
    write::{WriteError, Writer, owner::controller_reference, slow_start},
};
use serde_json::{Value, json};

use crate::memory::Memory;

/// Writes children, revisions and statuses, and remembers what the server made of them.
#[derive(Clone)]
pub struct Executor {
    writer: Writer,
    places: WatchedResources,
    memory: Memory,
}

impl Executor {
    pub fn new(writer: Writer, places: WatchedResources, memory: Memory) -> Self {
        Self { writer, places, memory }
    }

    /// How long the status of a `BasicDeployment` has been as it is.
    pub fn status_age(&self, deployment: &BasicDeployment) -> StatusAge {
        self.writer.status_age(uid(deployment))
    }

    /// Takes a step.
    pub async fn act(&self, observed: &Observed, action: Action) -> Result<Next, Error> {
        let deployment = &*observed.deployment;
        match action {
            Action::Record { rendered, number } => return self.record(deployment, rendered, number).await,
            Action::Reclaim { name, uid, hash, number } => {
                self.reclaim(deployment, [&name, &uid, &hash], number).await?;
            }
            Action::Renumber { revision, number, rejects } => {
                self.renumber(deployment, &revision, number, &rejects).await?;
            }
            Action::Create(desired) => self.apply(observed, &desired, None, false).await?,
            Action::Apply { child, desired, heals } => {
                self.apply(observed, &desired, Some(&child), heals).await?;
            }
            Action::Restart { child, command, token } => {
                self.restart(observed, &child, &command, token).await?;
            }
            Action::Scale { child, heals } | Action::ScaleFormer { child, heals } => {
                self.scale(observed, &child, heals).await?;
            }
            Action::Strip { child, additions } => self.strip(observed, &child, &additions).await?,
            Action::Delete(children) => {
                let delete = async |child: Arc<Child>| {
                    self.delete(deployment, &observed.place, [&child.namespace, &child.name, &child.uid])
                        .await
                };
                slow_start(children, delete, may_go_on).await.all()?;
            }
            Action::Prune(revisions) => {
                let delete = async |old: Arc<Revision>| {
                    self.delete(deployment, &self.places.revisions, [&old.namespace, &old.name, &old.uid])
                        .await
                };
                slow_start(revisions, delete, may_go_on).await.all()?;
            }
            Action::Tell(news) => {
                let tell = async |(command, status): (Arc<Command>, CommandStatus)| {
                    self.tell(deployment, &command, &status).await
                };
                let told = slow_start(news, tell, may_go_on).await;
                told.by_item(|(command, _)| command.uid.clone(), may_go_on)?;
            }
            Action::Refuse(refusal) => return Err(refusal.into()),
            Action::WriteStatus(status) => self.writer.write_status(deployment, &status, &CONDITIONS).await?,
            Action::Wait(time) => return Ok(Next::Wait(time)),
            Action::Settle => return Ok(Next::Settled),
        }
        Ok(Next::Written)
    }

    async fn record(
        &self,
        deployment: &BasicDeployment,
        rendered: Rendered,
        number: i64,
    ) -> Result<Next, Error> {
        let (name, uid) = (deployment.metadata.name.as_deref().unwrap_or_default(), uid(deployment));
        let WatchedResource { resource, seen } = &self.places.revisions;
        let revision = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": revision::name(name, uid, &rendered.hash),
                "namespace": deployment.metadata.namespace,
                "labels": {keys::DEPLOYMENT_UID: uid},
                "annotations": {keys::HASH: rendered.hash},
                "ownerReferences": [controller_reference(deployment)],
            },
            "data": rendered.object,
            "revision": number,
        });
        match self.writer.create(uid, seen, resource, &revision).await {
            // Perhaps by an earlier try whose answer was lost: the next pass looks what it is.
            Err(WriteError::AlreadyExists { .. }) => {
                self.memory.name_is_taken(uid, &rendered.hash);
                Ok(Next::Again)
            }
            created => {
                created?;
                self.memory.recorded(uid);
                Ok(Next::Written)
            }
        }
    }

    async fn reclaim(
        &self,
        deployment: &BasicDeployment,
        [name, its_uid, hash]: [&str; 3],
        number: i64,
    ) -> Result<(), Error> {
        let metadata = json!({
            "name": name, "namespace": deployment.metadata.namespace, "uid": its_uid,
            "labels": {keys::DEPLOYMENT_UID: uid(deployment)},
            "annotations": {keys::HASH: hash},
        });
        let patch = json!({"metadata": metadata, "revision": number});
        self.merge(deployment, &self.places.revisions, &patch).await?;
        self.memory.recorded(uid(deployment));
        Ok(())
    }

    async fn renumber(
        &self,
        deployment: &BasicDeployment,
        revision: &Revision,
        number: i64,
        rejects: &Rejects,
    ) -> Result<(), Error> {
        let Revision { namespace, name, uid, .. } = revision;
        let annotations = json!({keys::REJECTED_HASH: rejects.hash, keys::ROLLED_BACK_BY: rejects.command});
        let metadata = json!({"name": name, "namespace": namespace, "uid": uid, "annotations": annotations});
        let patch = json!({"metadata": metadata, "revision": number});
        self.merge(deployment, &self.places.revisions, &patch).await
    }

    /// The effect of a restart and the proof that it happened.
    async fn restart(
        &self,
        observed: &Observed,
        child: &Child,
        command: &Command,
        token: Option<String>,
    ) -> Result<(), Error> {
        let mut patch = patch_of(child);
        patch["metadata"]["annotations"] = json!({keys::LAST_COMMAND: command.uid});
        if let (Some(restarted_at), Some(token)) = (&observed.contract.restarted_at, token) {
            restarted_at.set(&mut patch, token.into());
        }
        self.merge(&observed.deployment, &observed.place, &patch).await
    }

    async fn scale(&self, observed: &Observed, child: &Child, heals: bool) -> Result<(), Error> {
        let (deployment, field) = (&*observed.deployment, &observed.contract.replicas);
        let mut patch = patch_of(child);
        field.set(&mut patch, deployment.spec.replicas.into());
        self.merge(deployment, &observed.place, &patch).await?;
        let whose = uid(deployment);
        self.memory.scaled(whose, &child.uid, deployment.spec.replicas, is_known_in(observed));
        if heals {
            self.memory.undid(whose, Part::Replicas, field.to_string());
        }
        Ok(())
    }

    async fn strip(&self, observed: &Observed, child: &Child, additions: &[Additions]) -> Result<(), Error> {
        let mut patch = patch_of(child);
        for added in additions {
            added.removed_in(&mut patch);
        }
        self.merge(&observed.deployment, &observed.place, &patch).await?;
        let first = additions.first().and_then(|added| Some((&added.map, added.keys.first()?)));
        let field = first.map(|(map, key)| format!("{map}[{key:?}]")).unwrap_or_default();
        self.memory.undid(uid(&observed.deployment), Part::Additions, field);
        Ok(())
    }

    async fn apply(
        &self,
        observed: &Observed,
        desired: &Desired,
        child: Option<&Child>,
        heals: bool,
    ) -> Result<(), Error> {
        let (deployment, place) = (&*observed.deployment, &observed.place);
        let mut object = desired.object.clone();
        let contract = &observed.contract;
        contract.replicas.set(&mut object, deployment.spec.replicas.into());
        // A token that was applied once, and is left out later, would be taken away.
        let token = child.map_or(desired.token.as_deref(), |child| child.restarted_at(contract));
        if let (Some(restarted_at), Some(token)) = (&contract.restarted_at, token) {
            restarted_at.set(&mut object, token.into());
        }
        if let Some(child) = child {
            object["metadata"]["uid"] = child.uid.as_str().into();
        }
        let whose = uid(deployment);
        let answer = self.writer.apply(whose, &place.seen, &place.resource, &object).await?;
        self.memory.applied(whose, &desired.hash, desired.seen_in(&answer));
        let applied = answer["metadata"]["uid"].as_str().unwrap_or_default();
        self.memory.scaled(whose, applied, deployment.spec.replicas, is_known_in(observed));
        if let Some(child) = child.filter(|_| heals) {
            let field = changed_field(child, desired).unwrap_or_default();
            self.memory.undid(whose, Part::Rendering, field);
        }
        Ok(())
    }

    /// Writes a command's status. One that the server never takes is no reason to stop: it is left alone.
    async fn tell(
        &self,
        deployment: &BasicDeployment,
        command: &Command,
        status: &CommandStatus,
    ) -> Result<(), Error> {
        let whose = uid(deployment);
        let WatchedResource { resource, seen } = self.places.of(command.kind);
        let metadata = metadata_of(command);
        let write = self.writer.write_status_for(whose, seen, resource, &metadata, status, &REPORTED);
        let told = write.await;
        self.memory.told(whose);
        match told {
            // It was cancelled meanwhile.
            Ok(()) | Err(WriteError::Gone { .. } | WriteError::Changed { .. }) => Ok(()),
            Err(error @ WriteError::StatusRefused { is_invalid: true, .. }) => {
                tracing::warn!(command = command.name, "a command is left alone: {error}");
                self.memory.is_unheard(whose, &command.uid);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Ends a command that no `BasicDeployment` ends; no pass waits for it.
    pub async fn end(&self, command: &Command, status: &CommandStatus) -> Result<(), Error> {
        let WatchedResource { resource, .. } = self.places.of(command.kind);
        let (metadata, seen) = (metadata_of(command), Watermark::unwatched());
        let write = self.writer.write_status_for(&command.uid, &seen, resource, &metadata, status, &REPORTED);
        Ok(write.await?)
    }

    async fn merge(
        &self,
        deployment: &BasicDeployment,
        place: &WatchedResource,
        patch: &Value,
    ) -> Result<(), Error> {
        Ok(self.writer.merge(uid(deployment), &place.seen, &place.resource, patch).await?)
    }

    async fn delete(
        &self,
        deployment: &BasicDeployment,
        place: &WatchedResource,
        [namespace, name, its_uid]: [&str; 3],
    ) -> Result<(), Error> {
        let WatchedResource { resource, seen } = place;
        Ok(self.writer.delete(uid(deployment), seen, resource, namespace, name, its_uid).await?)
    }
}

/// A patch of nothing but this very child.
fn patch_of(child: &Child) -> Value {
    json!({"metadata": {"name": child.name, "namespace": child.namespace, "uid": child.uid}})
}

fn is_known_in(observed: &Observed) -> impl Fn(&str) -> bool {
    |uid| observed.children().any(|child| child.uid == uid)
}

fn metadata_of(command: &Command) -> ObjectMeta {
    ObjectMeta {
        name: Some(command.name.clone()),
        namespace: Some(command.namespace.clone()),
        uid: Some(command.uid.clone()),
        ..ObjectMeta::default()
    }
}

fn uid(deployment: &BasicDeployment) -> &str {
    deployment.metadata.uid.as_deref().unwrap_or_default()
}

/// Whether a batch goes on after an error of one of its items.
fn may_go_on(error: &Error) -> bool {
    matches!(error, Error::Write(error) if error.may_concern_one_object())
}

#[cfg(test)]
mod tests;
