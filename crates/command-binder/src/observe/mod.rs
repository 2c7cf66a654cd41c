//! Caches and live reads → Observed. The only reader.

pub mod catalog;
mod waiting;

use std::{collections::HashMap, sync::Arc};

use command_binder::{
    command::{CommandRow, Finding},
    observed::{Observed, Target, TargetObject},
    place::place,
};
use command_kinds::{
    Reference,
    schemas::{Schemas, StatusSchema},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Client,
    discovery::{ApiResource, Scope},
};
use operator_kit::run::Backoffs;
use operator_watch::{ApiError, Cause, Discovery, DynamicRow, Live, ObjectId};
use parking_lot::Mutex;

pub use waiting::Waiting;
use waiting::{Awaited, TargetName};

/// Reads the state of a command and its target.
pub struct Observer {
    client: Client,
    discovery: Discovery,
    waiting: Waiting,
    schemas: Schemas,
    /// The labels that were found to name the targets of commands, by the uids of these.
    right_labels: Mutex<HashMap<String, Box<str>>>,
}

impl Observer {
    pub fn new(client: Client, discovery: Discovery, waiting: Waiting) -> Self {
        let schemas = Schemas::new(client.clone());
        Self { client, discovery, waiting, schemas, right_labels: Mutex::default() }
    }

    /// Reads the state of a command, and its target live unless the command shows that it is bound.
    pub async fn observe(
        &self,
        command: Arc<DynamicRow<CommandRow>>,
        backoffs: Backoffs,
    ) -> Result<Observed, ApiError> {
        let uid = ObjectId::of(&*command).uid;
        let bound_to = command.row.bound_to.as_ref();
        let is_label_checked = bound_to.is_some() && self.right_labels.lock().get(uid) == bound_to;
        if backoffs.is_empty() {
            // The next look-up enters whatever is still missing.
            self.waiting.leave(uid);
        }
        let is_needed = backoffs.is_empty() && command.metadata.deletion_timestamp.is_none();
        let target = match &command.row.finding {
            Finding::Target(to) if is_needed && command.row.proven_target(to, is_label_checked).is_none() => {
                Some(self.look_up(&command, to).await?)
            }
            _ => None,
        };
        let refreshed = match &command.row.finding {
            Finding::Target(to) if is_needed => self.refreshed(&command.row, to).await,
            _ => None,
        };
        let label = command.row.label();
        if let Some(Target::Served { object: Some(object), .. }) = &target
            && label.is_some_and(|label| *label == *object.uid)
        {
            self.right_labels.lock().insert(uid.to_owned(), object.uid.clone());
        }
        let can_report = self.can_report(&command).await;
        let now = Timestamp::now();
        Ok(Observed { command, backoffs, now, target, refreshed, is_label_checked, can_report })
    }

    /// Whether the condition `Bound` may be written on a command; `None` if that is not known for the moment.
    async fn can_report(&self, command: &DynamicRow<CommandRow>) -> Option<bool> {
        let kind = &command.row.kind;
        if !kind.reports_bound {
            return Some(false);
        }
        let warn = |schema: StatusSchema| {
            if !schema.takes_conditions {
                tracing::warn!(
                    entry = &*kind.id,
                    "reportsBound: the schema of this kind has no conditions with x-kubernetes-list-type map, the key type and all fields of a condition, so that Events are written instead; set reportsBound: false"
                );
            }
        };
        self.schemas.of(command, warn).await.map(|schema| schema.takes_conditions)
    }

    /// The reference that bound a command, in a version that is served, if its own one is not. A failed look-up is repeated with
    /// the next look.
    async fn refreshed(&self, row: &CommandRow, to: &Reference) -> Option<OwnerReference> {
        let owner = row.binding().filter(|owner| to.is_named_by(owner) && !row.is_in_watched_version())?;
        let version = owner.api_version.rsplit('/').next().filter(|version| ObjectId::is_name(version))?;
        let named = ApiResource {
            version: version.to_owned(),
            api_version: owner.api_version.clone(),
            ..to.kind.resource.clone()
        };
        let (found, _) = self.discovery.find(&named).await.ok()??;
        if found.api_version == owner.api_version {
            return None;
        }
        let (served, _) = self.discovery.find(&to.kind.resource).await.ok()??;
        Some(OwnerReference { api_version: served.api_version, ..owner.clone() })
    }

    /// Forgets a command that is gone.
    pub fn forget(&self, uid: &str) {
        self.waiting.leave(uid);
        self.right_labels.lock().remove(uid);
    }

    async fn look_up(&self, command: &DynamicRow<CommandRow>, to: &Reference) -> Result<Target, ApiError> {
        let wanted = &to.kind.resource;
        let Some(kind) = self.discovery.find(wanted).await? else {
            return Ok(self.without_kind(command, to));
        };
        match self.look_up_as(command, to, kind).await? {
            // It was served a while ago.
            Target::NotServed => match self.discovery.find_again(wanted).await? {
                Some(kind) => self.look_up_as(command, to, kind).await,
                None => Ok(self.without_kind(command, to)),
            },
            target @ Target::Served { .. } => Ok(target),
        }
    }

    /// The command is woken when the kind is served, unless its label names its target already.
    fn without_kind(&self, command: &DynamicRow<CommandRow>, to: &Reference) -> Target {
        if command.row.label().is_none() {
            self.waiting.enter(command, Awaited { kind: to.kind.clone(), target: None });
        }
        Target::NotServed
    }

    /// The command is woken when the target comes, even if that happens before the answer that there is none.
    async fn look_up_as(
        &self,
        command: &DynamicRow<CommandRow>,
        to: &Reference,
        kind: (ApiResource, Scope),
    ) -> Result<Target, ApiError> {
        let Ok(namespace) = place(&command.metadata, to, kind.1 == Scope::Namespaced) else {
            return Ok(Target::Served { kind, object: None });
        };
        let name = TargetName { namespace: namespace.unwrap_or_default().into(), name: to.name.clone() };
        self.waiting.enter(command, Awaited { kind: to.kind.clone(), target: Some(name) });
        // The present state, because a cache might still show a target that was replaced.
        let found = match Live::metadata(&self.client, &kind.0, namespace.unwrap_or_default(), &to.name).await
        {
            Err(error) if error.cause == Cause::KindNotServed => return Ok(Target::NotServed),
            found => found?,
        };
        let object = found.map(|found| TargetObject {
            uid: found.uid.unwrap_or_default().into(),
            is_terminating: found.deletion_timestamp.is_some(),
            created: found.creation_timestamp.map(|time| time.0),
        });
        if object.as_ref().is_some_and(|object| !object.is_terminating) {
            self.waiting.leave(ObjectId::of(command).uid);
        }
        Ok(Target::Served { kind, object })
    }
}

#[cfg(test)]
mod tests;
