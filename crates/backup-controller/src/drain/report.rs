//! The trail of objects that were released without a proven backup: an Event for each, beside the line in the log.

use std::{collections::VecDeque, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, discovery::ApiResource};
use operator_kit::report::Events;
use tokio::time::timeout;

use super::Found;

/// Time between two looks for room in the queue of Events.
const CATCH_UP_INTERVAL: Duration = Duration::from_millis(100);

/// Reports the released objects.
pub struct Report {
    events: Events,
    /// Maximum time that the end waits for the Events.
    limit: Duration,
    /// The Events that the queue had no room for. Nobody waits for them before the end: releases under way would seem
    /// unanswered meanwhile.
    backlog: VecDeque<(ObjectReference, &'static str)>,
}

impl Report {
    /// A report that waits no longer than `limit` for its Events: they are no reason to fail.
    pub fn new(events: Events, limit: Duration) -> Self {
        Self { events, limit, backlog: VecDeque::new() }
    }

    /// Reports an object that was released while it waited for its backup.
    pub fn released(&mut self, kind: &ApiResource, object: &Found) {
        let note = "released without a proven backup, because the controller is being uninstalled";
        self.tell(kind, object, note);
    }

    /// Reports an object whose release failed in a way that leaves its effect open. If it is still there, the next try
    /// releases it.
    pub fn perhaps_released(&mut self, kind: &ApiResource, object: &Found) {
        let note = "perhaps released without a proven backup, because the controller is being uninstalled: the API server did not say whether it was";
        self.tell(kind, object, note);
    }

    fn tell(&mut self, kind: &ApiResource, object: &Found, note: &'static str) {
        self.backlog.push_back((object.object_ref(kind), note));
        self.catch_up();
    }

    /// Queues as many Events as there is room for.
    fn catch_up(&mut self) {
        while self.events.has_capacity()
            && let Some((object, note)) = self.backlog.pop_front()
        {
            self.events.publish(&object, Events::warning("ReleasedByUninstall", note));
        }
    }

    /// Waits for the last Events.
    pub async fn end(mut self) {
        let limit = self.limit;
        let published = async {
            while !self.backlog.is_empty() {
                self.catch_up();
                tokio::time::sleep(CATCH_UP_INTERVAL).await;
            }
            self.events.flush(limit).await
        };
        if !matches!(timeout(limit, published).await, Ok(true)) {
            tracing::warn!(
                "not all Events about released objects were published; the log has a line for each"
            );
        }
    }
}
