//! Tells of objects that are left with the finalizer when the settings no longer have an entry for their kind.

use backup_controller::{Settings, finalizer, observed::Row};
use operator_kit::{report::Events, run::Triggers};

use crate::metrics::LeftMetrics;

/// Number of objects of a kind that get an Event.
const TOLD: usize = 20;

/// Tells of objects that nobody will release.
pub struct Leaving {
    triggers: Triggers<Row>,
    events: Events,
    metrics: LeftMetrics,
}

impl Leaving {
    /// Reads the objects from the watches behind these triggers.
    pub fn new(triggers: Triggers<Row>, events: Events, metrics: LeftMetrics) -> Self {
        Self { triggers, events, metrics }
    }

    /// Tells of the protected objects of kinds that have an entry in `former` and none in `current`. The watches of the
    /// former kinds must still run.
    pub fn tell(&self, former: &Settings, current: &Settings) {
        for (id, entries) in &former.by_resource {
            if current.by_resource.contains_key(id) {
                continue;
            }
            let mut left = self.triggers.objects(id);
            left.retain(|object| finalizer::is_there(&object.row.finalizers));
            let Some(resource) = entries.first().map(|entry| &entry.resource) else { continue };
            self.metrics.left(&resource.kind, left.len());
            if left.is_empty() {
                continue;
            }
            tracing::warn!(
                kind = resource.kind,
                objects = left.len(),
                "a kind has left the settings, and its objects that still carry the finalizer cannot be deleted: \
                 restore its entry with protect: false until none carries it"
            );
            for object in left.iter().take(TOLD) {
                self.events.warn(
                    &object.reference(),
                    "NoEntry",
                    "the values of backup-controller no longer have an entry for this kind, but the object still carries \
                     its finalizer and cannot be deleted: restore the entry with protect: false until no object carries it",
                );
            }
        }
        for entry in current.by_resource.values().filter_map(|entries| entries.first()) {
            self.metrics.left(&entry.resource.kind, 0);
        }
    }
}
