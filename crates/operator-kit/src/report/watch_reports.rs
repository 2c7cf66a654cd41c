use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use operator_watch::{Failure, Report};

use super::{Events, metrics::Metrics};

/// The topic of Events about unreadable objects.
const UNREADABLE: &str = "unreadable";

/// Counts the failures of watches and their unreadable objects, and reports each of these in an Event.
pub(crate) struct WatchReports {
    pub events: Events,
    pub metrics: Arc<Metrics>,
}

impl Report for WatchReports {
    fn failed(&self, kind: &str) {
        self.metrics.watch_errors.get_or_create(&Metrics::of(kind)).inc();
    }

    fn unreadable(&self, kind: &str, count: usize) {
        self.metrics.unreadable.get_or_create(&Metrics::of(kind)).set(count as u64);
    }

    fn is_unreadable(&self, object: &ObjectReference, mistake: &str, failure: &Failure) {
        // Another watch may find something else wrong with it.
        let event = Events::warning(failure.reason, &failure.message);
        self.events.publish_lasting(object, (UNREADABLE, mistake), (), event);
    }

    fn is_mended(&self, object: &ObjectReference, mistake: &str) {
        self.events.resolved(object, (UNREADABLE, mistake));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;
    use crate::testing::{Answer, Log, answering};

    const MINUTE: Duration = Duration::from_secs(60);

    fn reports() -> (WatchReports, Log) {
        let (client, log) = answering(|_| Answer::Done);
        (WatchReports { events: Events::over(client, "tests"), metrics: Arc::default() }, log)
    }

    fn object(name: &str) -> ObjectReference {
        ObjectReference {
            name: Some(name.to_owned()),
            uid: Some(name.to_owned()),
            ..ObjectReference::default()
        }
    }

    fn failure(mistake: &str) -> Failure {
        Failure::transient("Unreadable", mistake)
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_cannot_be_read_is_told_once_until_something_else_is_wrong_with_it() {
        let (reports, log) = reports();
        let told = async |mistake: &str| {
            reports.is_unreadable(&object("a"), mistake, &failure(mistake));
            reports.is_unreadable(&object("a"), mistake, &failure(mistake));
            sleep(MINUTE).await;
            log.take().len()
        };
        assert_eq!((told("no text").await, told("no text").await, told("no number").await), (1, 0, 1));
        reports.is_mended(&object("a"), "no text");
        assert_eq!((told("no number").await, told("no text").await), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_stays_unreadable_is_told_again_before_the_event_expires() {
        let (reports, log) = reports();
        for _ in 0..55 {
            reports.is_unreadable(&object("a"), "no text", &failure("no text"));
            sleep(MINUTE).await;
        }
        assert_eq!(log.take().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn more_unreadable_objects_than_events_have_room_for_are_all_told_in_minutes() {
        let (reports, log) = reports();
        for _ in 0..5 {
            for number in 0..1100 {
                reports.is_unreadable(&object(&format!("bad-{number}")), "no text", &failure("no text"));
            }
            sleep(MINUTE).await;
        }
        assert_eq!(log.take().len(), 1100);
    }

    #[tokio::test]
    async fn failures_and_unreadable_objects_are_counted_by_kind() {
        let (reports, _log) = reports();
        reports.failed("Pod");
        reports.unreadable("Pod", 2);
        let page = reports.metrics.encode().unwrap();
        for line in
            ["operator_watch_errors_total{kind=\"Pod\"} 1", "operator_unreadable_objects{kind=\"Pod\"} 2"]
        {
            assert!(page.contains(line), "{page}");
        }
    }
}
