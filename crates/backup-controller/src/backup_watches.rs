//! Being told that a backup changed. What it says is read live.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use catena_api::keys::{BACKUP_OF, BACKUP_TARGET};
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{Notices, Operator, Seen, Triggers, TrimmedObject, Watch, Watches};

use crate::{
    backup::Target,
    observe::Row,
    settings::{Backup, Settings},
};

/// The watches of the kinds that backups are of.
#[derive(Clone)]
pub struct BackupWatches {
    client: Client,
    watches: Watches,
    triggers: Triggers<Row>,
    running: Arc<Mutex<BTreeMap<Place, Notices>>>,
}

/// Version, kind and namespace.
type Place = (String, String, Option<String>);

impl BackupWatches {
    pub fn new(operator: &Operator<Settings>, triggers: Triggers<Row>) -> Self {
        Self { client: operator.client(), watches: operator.watches(), triggers, running: Arc::default() }
    }

    /// Watches what these backups are of, and nothing else any more.
    pub fn keep(&self, settings: &Settings) {
        let wanted: BTreeMap<Place, &Backup> =
            settings.kinds.values().map(|kind| (place(&kind.backup), &*kind.backup)).collect();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|place, _| wanted.contains_key(place));
        for (place, backup) in wanted {
            running.entry(place).or_insert_with(|| self.start(backup));
        }
    }

    /// What the watch of these backups has delivered.
    pub fn seen(&self, backup: &Backup) -> Seen {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let notices = running.get(&place(backup)).filter(|notices| notices.problem().is_none());
        notices.map_or_else(Seen::unwatched, |notices| notices.seen().clone())
    }

    fn start(&self, backup: &Backup) -> Notices {
        let ApiResource { kind, .. } = &backup.resource;
        let (api, title) = match &backup.namespace {
            Some(namespace) => (
                Api::namespaced_with(self.client.clone(), namespace, &backup.resource),
                format!("{kind} in {namespace} (backups)"),
            ),
            None => (Api::all_with(self.client.clone(), &backup.resource), format!("{kind} (backups)")),
        };
        let triggers = self.triggers.clone();
        let watch = Watch::metadata(api, title).labelled(BACKUP_OF);
        self.watches.notice(watch, move |backup: &TrimmedObject| {
            let annotations = backup.metadata.annotations.as_ref();
            let about = annotations.and_then(|annotations| annotations.get(BACKUP_TARGET));
            if let Some(target) = about.and_then(|about| serde_json::from_str::<Target>(about).ok()) {
                triggers.notify(&target.id, &target.namespace, &target.name);
            }
        })
    }
}

fn place(backup: &Backup) -> Place {
    let ApiResource { api_version, kind, .. } = &backup.resource;
    (api_version.clone(), kind.clone(), backup.namespace.clone())
}
