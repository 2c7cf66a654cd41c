//! Watches for changes of backups. Their content is read live.

use std::{collections::BTreeMap, sync::Arc};

use backup_controller::{
    backup::Target,
    observed::Row,
    settings::{Backup, Settings},
};
use catena_api::keys::{BACKUP_OF, BACKUP_TARGET};
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{
    run::Triggers,
    watch::{Notices, ServedKinds, TrimmedObject, Watch, Watches, Watermark},
};
use parking_lot::Mutex;

/// The watches of the kinds of backups.
#[derive(Clone)]
pub struct BackupWatches {
    client: Client,
    served_kinds: ServedKinds,
    watches: Watches,
    triggers: Triggers<Row>,
    running: Arc<Mutex<BTreeMap<Place, Running>>>,
}

struct Running {
    backup: Arc<Backup>,
    /// The kind, in the watched version.
    watched: ApiResource,
    notices: Notices,
}

/// Version, kind and namespace.
type Place = (String, String, Option<String>);

impl BackupWatches {
    /// Begins without any watch.
    pub fn new(client: Client, served_kinds: ServedKinds, watches: Watches, triggers: Triggers<Row>) -> Self {
        Self { client, served_kinds, watches, triggers, running: Arc::default() }
    }

    /// Watches exactly the kinds of these backups.
    pub fn keep(&self, settings: &Settings) {
        let wanted: BTreeMap<Place, &Arc<Backup>> =
            settings.kinds.values().map(|kind| (place(&kind.backup), &kind.backup)).collect();
        let mut running = self.running.lock();
        running.retain(|place, _| wanted.contains_key(place));
        for (place, backup) in wanted {
            running.entry(place).or_insert_with(|| self.start(backup, &backup.resource));
        }
    }

    /// Switches to another version when that of the settings is not served, and back when it is served again.
    pub async fn follow_versions(&self) {
        let doubt = |(place, running): (&Place, &Running)| {
            let Running { backup, watched, notices } = running;
            let is_unserved = notices.is_unserved();
            let is_doubted = is_unserved || *watched != backup.resource;
            is_doubted.then(|| (place.clone(), backup.clone(), watched.clone(), is_unserved))
        };
        let doubted: Vec<_> = self.running.lock().iter().filter_map(doubt).collect();
        for (place, backup, watched, is_unserved) in doubted {
            // Without the watch, a backup is checked from time to time.
            let found = self.served_kinds.find_for_watch(&backup.resource, is_unserved).await;
            if let Ok(Some(found)) = found
                && found.resource != watched
            {
                let started = self.start(&backup, &found.resource);
                self.running.lock().insert(place, started);
            }
        }
    }

    /// The highest version that the watch of these backups has delivered.
    pub fn seen(&self, backup: &Backup) -> Watermark {
        let running = self.running.lock();
        let notices = running.get(&place(backup)).map(|running| &running.notices);
        let notices = notices.filter(|notices| notices.problem().is_none());
        notices.map_or_else(Watermark::unwatched, |notices| notices.seen().clone())
    }

    fn start(&self, backup: &Arc<Backup>, watched: &ApiResource) -> Running {
        let kind = &watched.kind;
        let (api, title) = match &backup.namespace {
            Some(namespace) => (
                Api::namespaced_with(self.client.clone(), namespace, watched),
                format!("{kind} in {namespace} (backups)"),
            ),
            None => (Api::all_with(self.client.clone(), watched), format!("{kind} (backups)")),
        };
        let triggers = self.triggers.clone();
        let watch = Watch::metadata(api, title).labelled(BACKUP_OF);
        let notices = self.watches.notice(watch, move |backup: &TrimmedObject| {
            let annotations = backup.metadata.annotations.as_ref();
            let about = annotations.and_then(|annotations| annotations.get(BACKUP_TARGET));
            if let Some(target) = about.and_then(|about| serde_json::from_str::<Target>(about).ok()) {
                triggers.notify(&target.id, &target.namespace, &target.name);
            }
        });
        Running { backup: backup.clone(), watched: watched.clone(), notices }
    }
}

fn place(backup: &Backup) -> Place {
    let ApiResource { api_version, kind, .. } = &backup.resource;
    (api_version.clone(), kind.clone(), backup.namespace.clone())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use serde_json::json;

    use super::*;
    use crate::mock_server::server;

    #[tokio::test]
    async fn backups_are_watched_in_the_version_that_is_served() {
        let paths = Arc::<Mutex<BTreeSet<String>>>::default();
        let asked = paths.clone();
        let client = server(None, move |path| {
            asked.lock().insert(path.to_owned());
            let version = json!({"groupVersion": "batch/v2", "version": "v2"});
            let jobs =
                json!({"name": "jobs", "singularName": "", "namespaced": true, "kind": "Job", "verbs": []});
            match path {
                "/apis" => (
                    200,
                    json!({"groups": [
                        {"name": "batch", "versions": [version], "preferredVersion": version},
                    ]}),
                ),
                "/apis/batch/v2" => (200, json!({"groupVersion": "batch/v2", "resources": [jobs]})),
                _ => (404, json!({"status": "Failure", "reason": "NotFound", "code": 404})),
            }
        });
        let served_kinds = ServedKinds::new(client.clone());
        let watches = BackupWatches::new(client, served_kinds, Watches::default(), Triggers::default());
        let settings = json!({
            "kinds": {"maps": {"apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": "job"}},
            "backups": {"job": {
                "apiVersion": "batch/v1", "kind": "Job", "resource": "jobs", "template": "x", "succeeded": "true",
            }},
        });
        watches.keep(&serde_json::from_value(settings).unwrap());
        let served = async {
            while !paths.lock().contains("/apis/batch/v2/jobs") {
                watches.follow_versions().await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), served).await;
        assert!(waited.is_ok(), "{:?}", paths.lock());
    }
}
