//! The trail of objects that were released without a proven backup: a line in the log and an Event for each.

use std::time::Duration;

use kube::{Resource, discovery::ApiResource};
use operator_kit::report::Events;
use tokio::time::Instant;

use super::Found;

/// Reports the released objects.
pub struct Report {
    events: Events,
    /// The rest of the time for Events.
    left: Duration,
}

impl Report {
    /// A report that waits no longer than `limit` for its Events, in all: they are no reason to fail.
    pub fn new(events: Events, limit: Duration) -> Self {
        Self { events, left: limit }
    }

    /// Reports an object that was released while it waited for its backup.
    pub async fn released(&mut self, kind: &ApiResource, object: &Found) {
        let note = "released without a proven backup, because the controller is being uninstalled";
        self.tell(kind, object, note).await;
    }

    /// Reports an object whose release got no answer. If it is still there, the next try releases it.
    pub async fn perhaps_released(&mut self, kind: &ApiResource, object: &Found) {
        let note = "perhaps released without a proven backup, because the controller is being uninstalled: the API server did not answer";
        self.tell(kind, object, note).await;
    }

    /// If too many Events are queued, it waits for them.
    async fn tell(&mut self, kind: &ApiResource, object: &Found, note: &str) {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let name = object.metadata.name.as_deref().unwrap_or_default();
        tracing::info!(kind = kind.kind, namespace, name, "{note}");
        if !self.events.has_room() {
            self.flush().await;
        }
        self.events.warn(&object.object_ref(kind), "ReleasedByUninstall", note);
    }

    /// Waits for the last Events.
    pub async fn end(mut self) {
        if !self.flush().await {
            tracing::warn!(
                "not all Events about released objects were published; the log has a line for each"
            );
        }
    }

    async fn flush(&mut self) -> bool {
        let begun = Instant::now();
        let is_flushed = self.events.flush(self.left).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        is_flushed
    }
}
