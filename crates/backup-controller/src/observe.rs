//! Caches and live reads → Observed. The only reader.

mod backup_watches;
mod kinds;
mod large;
pub mod live;
mod namespaces;
mod survey;

use std::{sync::Arc, time::Duration};

use backup_controller::{
    Settings,
    annotation::BackupStatus,
    backup::{Search, Situation, excess, render},
    finalizer,
    force_release::ForceRelease,
    metadata,
    observed::{Held, Observed, Row},
    settings::{Entries, ProtectedKind},
};
use catena_api::reason;
use kube::{Client, discovery::ApiResource};
use operator_kit::run::{Backoffs, SettingsHandle};
use operator_watch::{ApiError, DynamicRow, Failure, ObjectId, SeenVersion};
use serde_json::Value;

use crate::memory::Memory;
use large::LargeObjects;

pub use backup_watches::BackupWatches;
pub use kinds::Followers;
pub use large::Turn;
pub use namespaces::Namespaces;

/// Time after which a status that an object does not show is told again.
const UNSHOWN_STATUS_DELAY: Duration = Duration::from_secs(30);

/// Reads the state of a protected object.
pub struct Observer {
    client: Client,
    settings: SettingsHandle<Settings>,
    namespaces: Namespaces,
    backups: BackupWatches,
    memory: Memory,
    large_objects: LargeObjects,
}

impl Observer {
    /// An observer that knows the labels of these namespaces, and is told of backups by these watches.
    pub fn new(
        client: Client,
        settings: SettingsHandle<Settings>,
        namespaces: Namespaces,
        backups: BackupWatches,
        memory: Memory,
    ) -> Self {
        let large_objects = LargeObjects::default();
        Self { client, settings, namespaces, backups, memory, large_objects }
    }

    /// Reads the state of an object. A large one has a turn; `None` if it is not its turn. A living one is read once, after it
    /// got our finalizer.
    pub async fn observe(
        &self,
        target: Arc<DynamicRow<Row>>,
        backoffs: Backoffs,
    ) -> Result<Option<(Observed, Option<Turn>)>, Failure> {
        let settings = self.settings.current();
        let (kind, is_selected) = match settings.entries(&target.kind_id, &target.row.judged_by) {
            Some(entries) => self.entry(entries, &target).await?,
            None => (None, false),
        };
        let id = ObjectId::of(&*target);
        let is_deleted = target.metadata.deletion_timestamp.is_some();
        let is_read =
            finalizer::is_there(&target.row.finalizers) && (is_deleted || self.memory.is_unmeasured(id.uid));
        let (mut held, mut excess) = (None, None);
        let (kind, turn) = match kind {
            Some(mut kind) if is_read => {
                let read = self.large_objects.read(&self.client, &target).await?;
                let Some((answer, turn)) = read else { return Ok(None) };
                if is_deleted {
                    let read = self.held(&settings, &kind, &target, answer, &backoffs).await?;
                    if let Some((recorded, state)) = read {
                        (kind, held) = (recorded, Some(state));
                    }
                } else {
                    self.memory.forget(id.uid);
                    excess = turn.as_ref().and_then(|_| unstorable(&settings, &kind, answer));
                }
                (Some(kind), turn)
            }
            kind => (kind, None),
        };
        let backups = kind.as_ref().map(|kind| self.backups.seen_version(&kind.backup));
        let backups = backups.unwrap_or_else(SeenVersion::unwatched);
        Ok(Some((Observed { target, backoffs, kind, is_selected, excess, backups, held }, turn)))
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.memory.forget(uid);
        self.large_objects.forget(uid);
    }

    /// The entry of the settings that an object belongs to: the first that selects it, or the strictest. And whether it is
    /// selected.
    async fn entry(
        &self,
        entries: &Entries,
        target: &DynamicRow<Row>,
    ) -> Result<(Option<Arc<ProtectedKind>>, bool), ApiError> {
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
                return Ok((Some(entry.clone()), true));
            }
        }
        Ok((entries.strictest().cloned(), false))
    }

    /// Reads the backups of an object that waits for one, and finds the entry of the settings that it belongs to. `None` if
    /// it does not wait.
    async fn held(
        &self,
        settings: &Settings,
        kind: &Arc<ProtectedKind>,
        target: &DynamicRow<Row>,
        answer: live::Answer,
        backoffs: &Backoffs,
    ) -> Result<Option<(Arc<ProtectedKind>, Held)>, Failure> {
        let ObjectId { name, uid, .. } = ObjectId::of(target);
        let resource = target.resource();
        // It is not gone, but out of sight.
        if !answer.is_served {
            let ApiResource { api_version, kind, .. } = resource;
            let message = format!(
                "{kind} {name:?} cannot be read, because {api_version} is no longer served; it stays held until a version is served: set served: true for one in the CustomResourceDefinition"
            );
            // A version that is served is found without any change.
            return Err(Failure::transient(reason::KIND_NOT_SERVED, message));
        }
        let now = answer.at;
        let is_it = |object: &Value| metadata::text(object, "uid") == uid;
        let Some(mut object) = answer.object.filter(is_it) else { return Ok(None) };
        let Some(since) = metadata::time(&object, "deletionTimestamp") else { return Ok(None) };
        let finalizers = metadata::finalizers(&object);
        if !finalizer::is_there(&finalizers) {
            return Ok(None);
        }
        let written = BackupStatus::of(&object);
        let told = self.memory.told(uid);
        let unshown = told.as_ref().filter(|(told, _)| written.as_ref() != Some(told));
        let tell_again = unshown.map(|(_, since)| UNSHOWN_STATUS_DELAY.saturating_sub(*since));
        let status = told.map(|(told, _)| told).or(written);
        let kind = match settings.by_resource.get(&*target.kind_id) {
            Some(entries) => entries.recorded(status.as_ref(), kind.clone()),
            None => kind.clone(),
        };
        without_managed_fields(&mut object);
        let force_release = ForceRelease::of(&object);
        let situation = if matches!(force_release, ForceRelease::Granted(_)) {
            None
        } else if let Some(problem) = answer.unreadable {
            Some(Situation::Unusable(problem.into()))
        } else {
            let (client, templates) = (&self.client, &settings.templates);
            let recorded = status.as_ref().map_or(0, |status| status.begun_by(&kind.policy));
            let begun = if self.memory.is_about_to_create(uid) { 0 } else { recorded };
            let mut failures = self.memory.failures(uid, &kind.policy);
            let search = Search::begin(&kind, &object, now, status.as_ref(), begun, &mut failures);
            match survey::situation(client, templates, search).await {
                Err(_) if backoffs.everything().is_some() => Some(Situation::Unread),
                read => {
                    let situation = read?;
                    self.memory.note_failures(uid, failures);
                    Some(situation)
                }
            }
        };
        let held = Held {
            finalizers,
            is_annotated: object.pointer("/metadata/annotations").is_some_and(Value::is_object),
            since,
            now,
            status,
            tell_again,
            force_release,
            refusals: self.memory.refusals(uid, &kind),
            situation,
        };
        Ok(Some((kind, held)))
    }
}

/// The reason why a large object cannot be backed up as it is now.
fn unstorable(settings: &Settings, kind: &ProtectedKind, answer: live::Answer) -> Option<Failure> {
    let mut object = answer.whole().ok()??;
    without_managed_fields(&mut object);
    match render(&settings.templates, kind, &object, 1) {
        Ok(backup) => excess(&kind.backup.name, &backup),
        Err(problem) => Some(problem),
    }
}

/// They are of no use to a backup.
fn without_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

#[cfg(test)]
mod tests;
