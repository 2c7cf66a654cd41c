//! Action → writes. The only writer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use catena_api::{BasicDeployment, CommandStatus, keys};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use operator_kit::{
    render::Rendered,
    report::StatusAge,
    run::Next,
    watch::{ReadError, live},
    write::{
        WriteError, Writer,
        owner::{controller_reference, is_controlled_by},
        slow_start,
    },
};
use serde_json::{Value, json};

use crate::{
    child::Child,
    command::{Command, CommandKind, REPORTED},
    commands::Commands,
    contest::{Additions, Part, changed_field},
    decide::Action,
    desired::Desired,
    error::{Error, Refusal},
    memory::{Memory, Remembered},
    observe::{Observed, Place},
    revision::{self, Rejects, Revision},
    status::CONDITIONS,
};

/// Writes children, revisions and statuses, and remembers what the server made of them.
pub struct Writes {
    client: Client,
    writer: Writer,
    revisions: Place,
    commands: [(CommandKind, Place); 2],
    memory: Mutex<HashMap<String, Memory>>,
}

impl Writes {
    pub fn new(client: Client, writer: Writer, revisions: Place, commands: &Commands) -> Self {
        let commands = CommandKind::ALL.map(|kind| (kind, commands.place(kind)));
        Self { client, writer, revisions, commands, memory: Mutex::default() }
    }

    /// How long the status has been as it is.
    pub fn status_age(&self, uid: &str) -> StatusAge {
        self.writer.status_age(uid)
    }

    /// What is remembered of the last writes for a `BasicDeployment`.
    pub fn remembered(&self, uid: &str, desired: Option<&Desired>) -> Remembered {
        self.lock().get(uid).map(|memory| memory.recall(desired)).unwrap_or_default()
    }

    /// Forgets a `BasicDeployment` that is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Takes a step.
    pub async fn act(&self, observed: &Observed, action: Action) -> Result<Next, Error> {
        let deployment = &*observed.deployment;
        match action {
            Action::Record { rendered, number } => self.record(deployment, rendered, number).await?,
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
                    self.delete(deployment, &self.revisions, [&old.namespace, &old.name, &old.uid]).await
                };
                slow_start(revisions, delete, may_go_on).await.all()?;
            }
            Action::Tell(news) => {
                let tell = async |(command, status): (Arc<Command>, CommandStatus)| {
                    self.tell(deployment, &command, &status).await
                };
                slow_start(news, tell, may_go_on).await.all()?;
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
    ) -> Result<(), Error> {
        let (name, uid) = (deployment.metadata.name.as_deref().unwrap_or_default(), uid(deployment));
        let Place { resource, seen } = &self.revisions;
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
            Err(WriteError::AlreadyExists { name, .. }) => {
                self.recognise(deployment, &name, &rendered.hash, number).await
            }
            created => Ok(created?),
        }
    }

    /// A revision of the name is there, and the watch does not show it as one: somebody took its label, or its hash.
    async fn recognise(
        &self,
        deployment: &BasicDeployment,
        name: &str,
        hash: &str,
        number: i64,
    ) -> Result<(), Error> {
        let kind = &self.revisions.resource.kind;
        let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
        let found = live::metadata_opt(&self.client, &self.revisions.resource, namespace, name).await;
        let Some(found) = found.map_err(|error| ReadError::of(&error, kind, name))? else {
            return Err(WriteError::gone(kind, name).into());
        };
        if !is_controlled_by(&found, uid(deployment)) {
            return Err(Refusal::RevisionNameTaken { name: name.to_owned() }.into());
        }
        let metadata = json!({
            "name": name, "namespace": namespace, "uid": found.uid,
            "labels": {keys::DEPLOYMENT_UID: uid(deployment)},
            "annotations": {keys::HASH: hash},
        });
        self.merge(deployment, &self.revisions, &json!({"metadata": metadata, "revision": number})).await
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
        self.merge(deployment, &self.revisions, &patch).await
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
        self.remember(deployment, |memory| {
            memory.scaled(&child.uid, deployment.spec.replicas, is_known_in(observed));
            if heals {
                memory.undid(Part::Replicas, field.to_string());
            }
        });
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
        self.remember(&observed.deployment, |memory| memory.undid(Part::Additions, field));
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
        let answer = self.writer.apply(uid(deployment), &place.seen, &place.resource, &object).await?;
        self.remember(deployment, |memory| {
            memory.applied(&desired.hash, desired.seen_in(&answer));
            let uid = answer["metadata"]["uid"].as_str().unwrap_or_default();
            memory.scaled(uid, deployment.spec.replicas, is_known_in(observed));
            if let Some(child) = child.filter(|_| heals) {
                memory.undid(Part::Rendering, changed_field(child, desired).unwrap_or_default());
            }
        });
        Ok(())
    }

    /// Writes a command's status. One that the server never takes is no reason to stop: it is left alone.
    async fn tell(
        &self,
        deployment: &BasicDeployment,
        command: &Command,
        status: &CommandStatus,
    ) -> Result<(), Error> {
        let Some((_, Place { resource, seen })) =
            self.commands.iter().find(|(kind, _)| *kind == command.kind)
        else {
            return Ok(());
        };
        let metadata = ObjectMeta {
            name: Some(command.name.clone()),
            namespace: Some(command.namespace.clone()),
            uid: Some(command.uid.clone()),
            ..ObjectMeta::default()
        };
        let write =
            self.writer.write_status_for(uid(deployment), seen, resource, &metadata, status, &REPORTED);
        let told = write.await;
        self.remember(deployment, Memory::told);
        match told {
            // It was cancelled meanwhile.
            Ok(()) | Err(WriteError::Gone { .. } | WriteError::Changed { .. }) => Ok(()),
            Err(error @ WriteError::StatusRefused { is_invalid: true, .. }) => {
                tracing::warn!(command = command.name, "a command is left alone: {error}");
                self.remember(deployment, |memory| memory.is_unheard(&command.uid));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn merge(&self, deployment: &BasicDeployment, place: &Place, patch: &Value) -> Result<(), Error> {
        Ok(self.writer.merge(uid(deployment), &place.seen, &place.resource, patch).await?)
    }

    async fn delete(
        &self,
        deployment: &BasicDeployment,
        place: &Place,
        [namespace, name, its_uid]: [&str; 3],
    ) -> Result<(), Error> {
        let Place { resource, seen } = place;
        Ok(self.writer.delete(uid(deployment), seen, resource, namespace, name, its_uid).await?)
    }

    fn remember(&self, deployment: &BasicDeployment, news: impl FnOnce(&mut Memory)) {
        news(self.lock().entry(uid(deployment).to_owned()).or_default());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A patch of nothing but this very child.
fn patch_of(child: &Child) -> Value {
    json!({"metadata": {"name": child.name, "namespace": child.namespace, "uid": child.uid}})
}

fn is_known_in(observed: &Observed) -> impl Fn(&str) -> bool {
    |uid| observed.children().any(|child| child.uid == uid)
}

fn uid(deployment: &BasicDeployment) -> &str {
    deployment.metadata.uid.as_deref().unwrap_or_default()
}

/// Whether a batch goes on after an error of one of its items.
fn may_go_on(error: &Error) -> bool {
    matches!(error, Error::Write(error) if error.may_concern_one_object())
}
