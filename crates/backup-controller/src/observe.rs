use std::sync::Arc;

use catena_api::keys::FORCE_RELEASE;
use jiff::Timestamp;
use kube::{
    Client,
    core::{Selector, SelectorExt},
};
use operator_kit::{Attempt, Bounded, Controller, Next, ReadError, Settings, TrimmedObject, Watched};
use serde_json::Value;

use crate::{
    act::Actor,
    backup::{Situation, situation},
    decide::{Action, decide},
    error::{Error, Unusable},
    finalizer, live,
    namespaces::Namespaces,
    settings::{OnFailure, ProtectedKind},
    status::BackupStatus,
};

/// What is kept of an object of a protected kind.
#[derive(Clone, Debug)]
pub struct Row {
    /// The entries of the settings whose selector selects it.
    pub selected_by: Vec<Arc<str>>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

/// What a decision about an object is made from.
#[derive(Debug)]
pub struct Observed {
    /// The object, as its watch shows it.
    pub target: Arc<Watched<Row>>,
    /// What this pass may do.
    pub attempt: Attempt,
    /// When it was observed.
    pub now: Timestamp,
    /// The entry of the settings that it belongs to; none while they are changing.
    pub kind: Option<Arc<ProtectedKind>>,
    /// Whether it is to be protected.
    pub selection: Selection,
    /// What is known live of an object that is being deleted and has our finalizer.
    pub held: Option<Held>,
}

/// Whether an object is to be protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// It is.
    Selected,
    /// It is not.
    NotSelected,
}

/// An object that is being deleted and has our finalizer, read live.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// Whether it has annotations.
    pub is_annotated: bool,
    /// When it was deleted, by the server's clock.
    pub since: Timestamp,
    /// What it says of its waiting.
    pub status: Option<BackupStatus>,
    /// Why somebody lets it go.
    pub force_release: Option<String>,
    /// How its backups stand; not asked when somebody lets it go.
    pub situation: Option<Situation>,
}

/// The controller of protected objects.
pub struct Backups {
    client: Client,
    settings: Settings<crate::Settings>,
    namespaces: Namespaces,
    actor: Actor,
}

impl Row {
    /// What is kept of an object.
    pub fn of(object: TrimmedObject, selectors: &[(Arc<str>, Selector)]) -> Self {
        let labels = object.metadata.labels.unwrap_or_default();
        let selecting = selectors.iter().filter(|(_, selector)| selector.matches(&labels));
        Self {
            selected_by: selecting.map(|(id, _)| id.clone()).collect(),
            finalizers: object.metadata.finalizers.unwrap_or_default(),
        }
    }
}

impl Backups {
    pub fn new(
        client: Client,
        settings: Settings<crate::Settings>,
        namespaces: Namespaces,
        actor: Actor,
    ) -> Self {
        Self { client, settings, namespaces, actor }
    }

    /// The entry of the settings that an object belongs to: the first that selects it, or just the first.
    async fn entry(&self, target: &Watched<Row>) -> Result<(Option<Arc<ProtectedKind>>, Selection), Error> {
        let settings = self.settings.current();
        let entries = settings.by_resource.get(&*target.source.id).map(Vec::as_slice).unwrap_or_default();
        let namespace = target.metadata.namespace.as_deref();
        // What its watch shows is of former settings, of which an entry was renamed: it is judged by what the next one shows.
        let is_former = |id: &Arc<str>| !entries.iter().any(|entry| *entry.id == **id);
        if target.row.selected_by.iter().any(is_former) {
            return Ok((None, Selection::NotSelected));
        }
        for entry in entries.iter().filter(|entry| entry.protect) {
            if !target.row.selected_by.iter().any(|id| **id == *entry.id) {
                continue;
            }
            let is_selected = match (&entry.namespaces, namespace) {
                (Some(selector), Some(namespace)) => self.namespaces.selects(selector, namespace).await?,
                _ => true,
            };
            if is_selected {
                return Ok((Some(entry.clone()), Selection::Selected));
            }
        }
        // Of what was protected and belongs to none any more, none that lets go is taken as long as there is another.
        let strictest = entries.iter().find(|entry| entry.on_failure == OnFailure::Hold).or(entries.first());
        Ok((strictest.cloned(), Selection::NotSelected))
    }

    /// What is known live of an object that waits for its backup, and the entry of the settings that it belongs to.
    async fn held(
        &self,
        kind: Arc<ProtectedKind>,
        target: &Watched<Row>,
    ) -> Result<(Arc<ProtectedKind>, Option<Held>), Error> {
        let namespace = target.metadata.namespace.as_deref().unwrap_or_default();
        let name = target.metadata.name.as_deref().unwrap_or_default();
        let uid = target.metadata.uid.as_deref().unwrap_or_default();
        let found = live::get_bounded(&self.client, &kind.resource, namespace, name).await?;
        let Some(Bounded { value: mut object, is_whole }) = found else { return Ok((kind, None)) };
        let finalizers = live::finalizers(&object);
        let Some(since) = live::time(&object, "deletionTimestamp") else { return Ok((kind, None)) };
        if live::text(&object, "uid") != uid || !finalizer::is_there(&finalizers) {
            return Ok((kind, None));
        }
        let settings = self.settings.current();
        let status = BackupStatus::of(&object);
        // Its labels do not matter any more: it says which entry it belongs to.
        let entries = settings.by_resource.get(&*target.source.id).into_iter().flatten();
        let recorded =
            status.as_ref().and_then(|status| entries.into_iter().find(|entry| entry.id == status.entry));
        let kind = recorded.cloned().unwrap_or(kind);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let reason = live::entry(&object, "annotations", FORCE_RELEASE).map(str::trim);
        let force_release = reason.filter(|reason| !reason.is_empty()).map(str::to_owned);
        let situation = if force_release.is_some() {
            None
        } else if is_whole {
            // Where to begin; what is there is judged in any case.
            let first = status.as_ref().map_or(1, |status| status.attempt);
            Some(situation(&self.client, &settings.templates, &kind, &object, first).await?)
        } else {
            // A backup that is made from it would lack what is below.
            let problem = ReadError::TooDeep { kind: kind.resource.kind.clone(), name: name.to_owned() };
            Some(Situation::Unusable(Unusable::OutOfReach(problem)))
        };
        let held = Held {
            finalizers,
            is_annotated: object.pointer("/metadata/annotations").is_some_and(Value::is_object),
            since,
            status,
            force_release,
            situation,
        };
        Ok((kind, Some(held)))
    }
}

impl Controller for Backups {
    type Kind = Watched<Row>;
    type Observed = Observed;
    type Action = Action;
    type Error = Error;

    async fn observe(&self, target: Arc<Watched<Row>>, attempt: Attempt) -> Result<Observed, Error> {
        let (kind, selection) = self.entry(&target).await?;
        let is_held =
            target.metadata.deletion_timestamp.is_some() && finalizer::is_there(&target.row.finalizers);
        let (kind, held) = match kind {
            Some(kind) if is_held => {
                let (kind, held) = self.held(kind, &target).await?;
                (Some(kind), held)
            }
            kind => (kind, None),
        };
        Ok(Observed { target, attempt, now: Timestamp::now(), kind, selection, held })
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    fn forget(&self, uid: &str) {
        self.actor.forget(uid);
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Next, Error> {
        self.actor.act(&observed, action).await
    }
}
