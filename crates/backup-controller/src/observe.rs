use std::sync::Arc;

use jiff::Timestamp;
use kube::{
    Client,
    core::{Selector, SelectorExt},
};
use operator_kit::{
    run::{Attempt, Controller, Next, Settings},
    watch::{Bounded, ReadError, ServedKinds, TrimmedObject, Watched},
};
use serde_json::Value;

use crate::{
    act::Actor,
    backup::{Situation, Survey},
    decide::{Action, decide},
    error::{Error, Unusable},
    finalizer,
    force_release::ForceRelease,
    live,
    memory::Refusals,
    metadata,
    namespaces::Namespaces,
    settings::{Entries, ProtectedKind},
    status::BackupStatus,
};

/// What is kept of an object of a protected kind.
#[derive(Clone, Debug)]
pub struct Row {
    /// The entries of the settings whose selector selects it.
    pub selected_by: Vec<Arc<str>>,
    /// The fingerprint of those entries: other ones are not judged by what these select.
    pub judged_by: Arc<str>,
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
    /// When it was read, by the server's clock.
    pub now: Timestamp,
    /// What it says of its waiting.
    pub status: Option<BackupStatus>,
    /// Whether somebody lets it go.
    pub force_release: ForceRelease,
    /// How often in a row the server refused to create a backup.
    pub refusals: u32,
    /// How its backups stand; not asked when somebody lets it go.
    pub situation: Option<Situation>,
}

/// The controller of protected objects.
pub struct Backups {
    client: Client,
    served_kinds: ServedKinds,
    settings: Settings<crate::Settings>,
    namespaces: Namespaces,
    refusals: Refusals,
    actor: Actor,
}

impl Row {
    /// What is kept of an object.
    pub fn of(object: TrimmedObject, selectors: &[(Arc<str>, Selector)], judged_by: &Arc<str>) -> Self {
        let labels = object.metadata.labels.unwrap_or_default();
        let selecting = selectors.iter().filter(|(_, selector)| selector.matches(&labels));
        Self {
            selected_by: selecting.map(|(id, _)| id.clone()).collect(),
            judged_by: judged_by.clone(),
            finalizers: object.metadata.finalizers.unwrap_or_default(),
        }
    }
}

impl Backups {
    pub fn new(
        client: Client,
        served_kinds: ServedKinds,
        settings: Settings<crate::Settings>,
        namespaces: Namespaces,
        refusals: Refusals,
        actor: Actor,
    ) -> Self {
        Self { client, served_kinds, settings, namespaces, refusals, actor }
    }

    /// The entry of the settings that an object belongs to: the first that selects it, or the strictest.
    async fn entry(
        &self,
        entries: &Entries,
        target: &Watched<Row>,
    ) -> Result<(Option<Arc<ProtectedKind>>, Selection), Error> {
        let namespace = target.metadata.namespace.as_deref();
        for entry in entries.protecting() {
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
        Ok((entries.strictest().cloned(), Selection::NotSelected))
    }

    /// What is known live of an object that waits for its backup, and the entry of the settings that it belongs to.
    async fn held(
        &self,
        settings: &crate::Settings,
        kind: Arc<ProtectedKind>,
        target: &Watched<Row>,
    ) -> Result<(Arc<ProtectedKind>, Option<Held>), Error> {
        let namespace = target.metadata.namespace.as_deref().unwrap_or_default();
        let name = target.metadata.name.as_deref().unwrap_or_default();
        let uid = target.metadata.uid.as_deref().unwrap_or_default();
        let answer = live::read(&self.client, &target.source.resource, namespace, name).await?;
        let Some(Bounded { value: mut object, is_whole }) = answer.object else { return Ok((kind, None)) };
        let now = answer.at;
        let finalizers = metadata::finalizers(&object);
        let Some(since) = metadata::time(&object, "deletionTimestamp") else { return Ok((kind, None)) };
        if metadata::text(&object, "uid") != uid || !finalizer::is_there(&finalizers) {
            return Ok((kind, None));
        }
        let status = BackupStatus::of(&object);
        let kind = match settings.by_resource.get(&*target.source.id) {
            Some(entries) => recorded(entries, &object, kind),
            None => kind,
        };
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let force_release = ForceRelease::of(&object, status.as_ref());
        let situation = if matches!(force_release, ForceRelease::Granted(_)) {
            None
        } else if is_whole {
            let (client, served_kinds, templates) = (&self.client, &self.served_kinds, &settings.templates);
            let survey = Survey { client, served_kinds, templates, kind: &kind, target: &object, now };
            // Where to begin; what is there is judged in any case.
            let first = status.as_ref().map_or(1, |status| status.attempt);
            Some(survey.situation(first, BackupStatus::former_attempt(&object)).await?)
        } else {
            // A backup that is made from it would lack what is below.
            let problem = ReadError::TooDeep { kind: kind.resource.kind.clone(), name: name.to_owned() };
            Some(Situation::Unusable(Unusable::OutOfReach(problem)))
        };
        let held = Held {
            finalizers,
            is_annotated: object.pointer("/metadata/annotations").is_some_and(Value::is_object),
            since,
            now,
            status,
            force_release,
            refusals: self.refusals.of(uid),
            situation,
        };
        Ok((kind, Some(held)))
    }
}

/// The entry that a held object says it belongs to, whatever its labels are by now; else the one given. What may have been
/// said of another object lets none go more easily.
fn recorded(entries: &Entries, object: &Value, otherwise: Arc<ProtectedKind>) -> Arc<ProtectedKind> {
    let said = BackupStatus::of(object).and_then(|status| entries.named(&status.entry));
    let said = said.or_else(|| {
        let former = entries.named(&BackupStatus::former(object)?.entry)?;
        (former.always_holds() && !otherwise.always_holds()).then_some(former)
    });
    said.cloned().unwrap_or(otherwise)
}

impl Controller for Backups {
    type Kind = Watched<Row>;
    type Observed = Observed;
    type Action = Action;
    type Error = Error;

    async fn observe(&self, target: Arc<Watched<Row>>, attempt: Attempt) -> Result<Observed, Error> {
        let settings = self.settings.current();
        let (kind, selection) = match settings.entries(&target.source.id, &target.row.judged_by) {
            Some(entries) => self.entry(entries, &target).await?,
            None => (None, Selection::NotSelected),
        };
        let is_held =
            target.metadata.deletion_timestamp.is_some() && finalizer::is_there(&target.row.finalizers);
        let (kind, held) = match kind {
            Some(kind) if is_held => {
                let (kind, held) = self.held(&settings, kind, &target).await?;
                (Some(kind), held)
            }
            kind => (kind, None),
        };
        Ok(Observed { target, attempt, kind, selection, held })
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    fn forget(&self, uid: &str) {
        self.refusals.forget(uid);
        self.actor.forget(uid);
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Next, Error> {
        self.actor.act(&observed, action).await
    }
}

#[cfg(test)]
mod tests {
    use catena_api::keys::BACKUP_STATUS;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_that_names_no_object_counts_only_where_it_holds_more_strictly() {
        let entry = |policy: &str| format!("{{apiVersion: v1, kind: A, resource: as, backup: b, {policy}}}");
        let settings: crate::Settings = serde_saphyr::from_str(&format!(
            "kinds: {{hold: {0}, other: {0}, release: {1}, none: {2}}}\nbackups: {{b: {{apiVersion: v1, kind: B, resource: bs, \
             template: x, succeeded: 'true'}}}}",
            entry("onFailure: Hold"),
            entry("onFailure: Release"),
            entry("protect: false"),
        ))
        .unwrap();
        let entries = &settings.by_resource["as"];
        let by = |uid: &str, said: &str, otherwise: &str| {
            let status = json!({
                "uid": uid, "state": "Failed", "entry": said, "attempt": 1, "since": "2026-01-01T00:00:00Z",
                "reason": "BackupFailed", "message": "",
            });
            let annotations = json!({BACKUP_STATUS: status.to_string()});
            let object = json!({"metadata": {"uid": "u", "annotations": annotations}});
            recorded(entries, &object, entries.named(otherwise).unwrap().clone()).id.clone()
        };
        assert_eq!(
            (by("u", "release", "hold"), by("v", "hold", "release")),
            ("release".into(), "release".into())
        );
        assert_eq!((by("", "hold", "release"), by("", "hold", "none")), ("hold".into(), "hold".into()));
        for (said, otherwise) in [
            ("other", "hold"),
            ("release", "hold"),
            ("release", "none"),
            ("none", "release"),
            ("lost", "release"),
        ] {
            assert_eq!(by("", said, otherwise), otherwise, "{said}");
        }
    }
}
