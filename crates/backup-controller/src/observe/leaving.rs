//! Warns of kinds that leave the settings while objects of them still carry the finalizer.

use backup_controller::{Settings, finalizer, observed::Row};
use operator_kit::{report::SettingsEvents, run::Triggers};

/// Warns of kinds whose objects nobody will release.
pub struct Leaving {
    triggers: Triggers<Row>,
    events: SettingsEvents,
}

impl Leaving {
    /// Reads the objects from the watches behind these triggers.
    pub fn new(triggers: Triggers<Row>, events: SettingsEvents) -> Self {
        Self { triggers, events }
    }

    /// Warns of kinds that have an entry in `former` and none in `current`. The watches of the former kinds must still run.
    pub fn warn(&self, former: &Settings, current: &Settings) {
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
        let warning = format!(
            "kinds: there is no entry any more for {}, whose objects still carry the finalizer and cannot be deleted; restore the \
             entries with protect: false until no object carries it",
            left.join(", ")
        );
        tracing::warn!("{warning}");
        self.events.warn("NoEntry", "RemoveEntry", &warning);
    }
}
