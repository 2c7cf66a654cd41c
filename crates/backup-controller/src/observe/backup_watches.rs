//! Watches for changes of backups. Their content is read live.

use std::{collections::BTreeMap, sync::Arc};

use backup_controller::{
    backup::Target,
    observed::Row,
    settings::{Backup, Settings},
};
use catena_api::keys::{BACKUP_OF, BACKUP_TARGET};
use kube::{Client, discovery::ApiResource};
use operator_kit::run::Triggers;
use operator_watch::{PrunedObject, SeenVersion, Watch, WatchHandle, Watches};
use parking_lot::Mutex;

/// The watches of the kinds of backups.
#[derive(Clone)]
pub struct BackupWatches {
    client: Client,
    watches: Watches,
    triggers: Triggers<Row>,
    running: Arc<Mutex<BTreeMap<Place, WatchHandle>>>,
}

/// Version, kind and namespace.
type Place = (String, String, Option<String>);

impl BackupWatches {
    /// Begins without any watch.
    pub fn new(client: Client, watches: Watches, triggers: Triggers<Row>) -> Self {
        Self { client, watches, triggers, running: Arc::default() }
    }

    /// Watches exactly the kinds of these backups.
    pub fn keep(&self, settings: &Settings) {
        let wanted: BTreeMap<Place, &Arc<Backup>> =
            settings.kinds.values().map(|kind| (place(&kind.backup), &kind.backup)).collect();
        let mut running = self.running.lock();
        running.retain(|place, _| wanted.contains_key(place));
        for (place, backup) in wanted {
            running.entry(place).or_insert_with(|| self.start(backup));
        }
    }

    /// The highest version that the watch of these backups has delivered.
    pub fn seen_version(&self, backup: &Backup) -> SeenVersion {
        let running = self.running.lock();
        let watch = running.get(&place(backup)).filter(|watch| watch.problem().is_none());
        watch.map_or_else(SeenVersion::unwatched, |watch| watch.seen_version().clone())
    }

    fn start(&self, backup: &Backup) -> WatchHandle {
        let kind = &backup.resource.kind;
        let watch = Watch::all(&self.client, &backup.resource).metadata_only().labelled(BACKUP_OF);
        let watch = match &backup.namespace {
            Some(namespace) => {
                watch.in_namespace(namespace).called(format!("{kind} in {namespace} (backups)"))
            }
            None => watch.called(format!("{kind} (backups)")),
        };
        let triggers = self.triggers.clone();
        self.watches.watch_changes(watch, move |backup: &PrunedObject| {
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
