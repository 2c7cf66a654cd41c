//! Keeps the watches in line with the settings.

use std::sync::Arc;

use backup_controller::{Settings, finalizer, observed::Row, settings::Entries};
use catena_api::reason;
use k8s_openapi::api::core::v1::ObjectReference;
use operator_kit::{
    report::{Event, Events},
    run::{SettingsHandle, Triggers},
};
use operator_watch::DynamicKind;
use tokio::sync::watch;

use crate::metrics::HeldMetrics;

use super::{backup_watches::BackupWatches, namespaces::Namespaces};

/// What changes with the settings.
pub struct Followers {
    pub backups: BackupWatches,
    pub namespaces: Namespaces,
    pub metrics: HeldMetrics,
    pub triggers: Triggers<Row>,
    pub events: Events,
    /// The `ConfigMap` that the settings come from, if it is known.
    pub config_map: Option<ObjectReference>,
}

impl Followers {
    /// Follows the settings, forever.
    pub async fn follow(
        self,
        mut settings: SettingsHandle<Settings>,
        wanted: watch::Sender<Vec<DynamicKind<Row>>>,
    ) {
        let mut former = settings.current();
        loop {
            let current = settings.current();
            self.warn_of_left(&former, &current);
            self.namespaces.keep(&current);
            self.backups.keep(&current);
            self.metrics.expect(&current);
            let kinds = current.by_resource.iter().filter_map(|(id, entries)| watched(id, entries));
            wanted.send_replace(kinds.collect());
            former = current;
            settings.changed().await;
        }
    }

    /// Warns of kinds that have an entry in `former` and none in `current` while objects of them still carry the finalizer: nobody
    /// will release these. The watches of the former kinds must still run.
    fn warn_of_left(&self, former: &Settings, current: &Settings) {
        let gone = former.by_resource.keys().filter(|id| !current.by_resource.contains_key(*id));
        let left: Vec<String> = gone
            .filter_map(|id| {
                let objects = self.triggers.objects(id);
                let count =
                    objects.iter().filter(|object| finalizer::is_there(&object.row.finalizers)).count();
                (count > 0).then(|| format!("{id} ({count} objects)"))
            })
            .collect();
        if left.is_empty() {
            return;
        }
        let note = format!(
            "kinds: there is no entry any more for {}, whose objects still carry the finalizer and cannot be deleted; restore the \
             entries with protect: false until no object carries it",
            left.join(", ")
        );
        tracing::warn!("{note}");
        let event = Event { action: "RemoveEntry".into(), ..Events::warning(reason::NO_ENTRY, &note) };
        self.events.publish(self.config_map.as_ref(), event);
    }
}

/// Watches all objects of a kind, even those that are not selected, because an object that leaves the selection has to
/// lose our finalizer.
fn watched(id: &str, entries: &Entries) -> Option<DynamicKind<Row>> {
    let (selectors, fingerprint) = (entries.selectors(), entries.fingerprint().clone());
    let resource = entries.first()?.resource.clone();
    let judged_by = fingerprint.clone();
    Some(DynamicKind {
        id: id.into(),
        resource: resource.into(),
        selector: None,
        is_metadata_only: true,
        prune: Arc::new(move |object| Row::of(object, &selectors, &judged_by)),
        fingerprint: fingerprint.to_string(),
    })
}
