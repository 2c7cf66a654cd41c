//! Keeps the watches in line with the settings.

use backup_controller::{Settings, observed::Row, settings::Entries};
use operator_kit::{run::LiveSettings, watch::WatchedKind};
use tokio::sync::watch;

use crate::metrics::HeldMetrics;

use super::{backup_watches::BackupWatches, leaving::Leaving, namespaces::Namespaces};

/// Follows the settings, forever.
pub async fn follow(
    mut settings: LiveSettings<Settings>,
    wanted: watch::Sender<Vec<WatchedKind<Row>>>,
    backups: BackupWatches,
    namespaces: Namespaces,
    leaving: Leaving,
    metrics: HeldMetrics,
) {
    let mut former = settings.current();
    loop {
        let current = settings.current();
        leaving.warn(&former, &current);
        namespaces.keep(&current);
        backups.keep(&current);
        metrics.expect(&current);
        let kinds = current.by_resource.iter().filter_map(|(id, entries)| watched(id, entries));
        wanted.send_replace(kinds.collect());
        former = current;
        settings.changed().await;
    }
}

/// Watches all objects of a kind, even those that are not selected, because an object that leaves the selection has to
/// lose our finalizer.
fn watched(id: &str, entries: &Entries) -> Option<WatchedKind<Row>> {
    let (selectors, fingerprint) = (entries.selectors(), entries.fingerprint().clone());
    let resource = entries.first()?.resource.clone();
    let judged_by = fingerprint.clone();
    let trim = move |object| Row::of(object, &selectors, &judged_by);
    Some(WatchedKind::new(id, resource, &*fingerprint, trim).metadata_only())
}
