use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Reporter},
};
use tokio::{
    sync::{
        mpsc::{Receiver, Sender, channel},
        oneshot,
    },
    time::{sleep, timeout},
};

use super::{clip::clip, metrics::Metrics, recorder::Recorder};

/// Delay of a step that must leave an Event, while the queue has no room.
pub const EVENTS_BUSY: Duration = Duration::from_secs(60);
/// Maximum length of a note in the Events API.
const LONGEST_NOTE: usize = 1024;
/// The action of Events that tell of no other one.
const RECONCILE: &str = "Reconcile";
/// Maximum length of an action.
const LONGEST_ACTION: usize = 128;
/// Maximum length of the name of the reporting instance.
const LONGEST_INSTANCE: usize = 128;
/// Time limit for publishing one Event.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of queued Events; more are dropped.
const QUEUE: usize = 1000;
/// Pause after each Event, unless somebody waits for the last one: at most 50 a second.
const EVENT_INTERVAL: Duration = Duration::from_millis(20);
/// Number of Events after which it is forgotten which ones may repeat.
const REMEMBERED: usize = 1000;

/// Publishes Events about objects: best effort, aggregated, never a reason to fail. They are published one after
/// another in the background, from a bounded queue.
#[derive(Clone)]
pub struct Events {
    queue: Sender<Queued>,
    metrics: Arc<Metrics>,
    /// Whether somebody waits for the queue to be empty.
    is_awaited: Arc<AtomicBool>,
}

enum Queued {
    Event(Box<(Event, ObjectReference)>),
    /// Somebody waits until everything before it has been published.
    Mark(oneshot::Sender<()>),
}

impl Events {
    /// Events without an [`Operator`](crate::run::Operator), such as those over a mocked client in a test.
    #[must_use]
    pub fn over(client: Client, controller: &str) -> Self {
        Self::new(client, controller, controller, Arc::default())
    }

    pub(crate) fn new(client: Client, controller: &str, instance: &str, metrics: Arc<Metrics>) -> Self {
        let instance = clip(instance, LONGEST_INSTANCE);
        let reporter = Reporter { controller: controller.into(), instance: Some(instance) };
        let (queue, queued) = channel(QUEUE);
        let is_awaited = Arc::<AtomicBool>::default();
        tokio::spawn(publish(client, reporter, queued, metrics.clone(), is_awaited.clone()));
        Self { queue, metrics, is_awaited }
    }

    /// Publishes a warning. The reason must not contain variable parts.
    pub fn warn(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        self.enqueue(EventType::Warning, object, reason, RECONCILE, note);
    }

    /// Publishes an Event of the type `Normal`.
    pub fn tell(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        self.enqueue(EventType::Normal, object, reason, RECONCILE, note);
    }

    /// Publishes an Event, with its texts cut to the lengths that the API takes.
    pub fn publish(&self, object: &ObjectReference, event: Event) {
        let note = event.note.map(|note| clip(&note, LONGEST_NOTE));
        let event = Event { note, action: clip(&event.action, LONGEST_ACTION), ..event };
        if self.queue.try_send(Queued::Event(Box::new((event, object.clone())))).is_err() {
            self.metrics.event("dropped");
        }
    }

    /// Whether the queue has room for another Event; otherwise it would be dropped. After an await, somebody else may have
    /// taken it.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.queue.capacity() > 0
    }

    /// Waits until every queued Event has been published or has failed, at most for this time, and without pauses between
    /// them. Returns whether it is so; Events that are still queued when the process ends are lost.
    pub async fn flush(&self, limit: Duration) -> bool {
        self.is_awaited.store(true, Ordering::Relaxed);
        let (reached, is_reached) = oneshot::channel();
        let flushed = async {
            self.queue.send(Queued::Mark(reached)).await.ok()?;
            is_reached.await.ok()
        };
        matches!(timeout(limit, flushed).await, Ok(Some(())))
    }

    /// Publishes an Event about an action.
    pub(crate) fn enqueue(
        &self,
        type_: EventType,
        object: &ObjectReference,
        reason: &'static str,
        action: &str,
        note: &str,
    ) {
        let (reason, action, note) = (reason.into(), action.into(), Some(note.into()));
        self.publish(object, Event { type_, reason, note, action, secondary: None });
    }
}

/// Publishes queued Events until the queue is closed.
///
/// A [`Recorder`] counts Events that differ in nothing but their note as repeats of the first one, and keeps its note.
/// So each note has a recorder of its own: a second mistake is not told with the words of the first.
async fn publish(
    client: Client,
    reporter: Reporter,
    mut queued: Receiver<Queued>,
    metrics: Arc<Metrics>,
    is_awaited: Arc<AtomicBool>,
) {
    let recorder = || Recorder::new(client.clone(), reporter.clone());
    let (mut by_note, hashes) = (HashMap::<u64, Recorder>::new(), RandomState::new());
    let mut published = 0;
    while let Some(next) = queued.recv().await {
        let (event, about) = match next {
            Queued::Event(event) => *event,
            Queued::Mark(reached) => {
                is_awaited.store(false, Ordering::Relaxed);
                // The one who waited may have given up.
                reached.send(()).ok();
                continue;
            }
        };
        if published == REMEMBERED {
            by_note.clear();
            published = 0;
        }
        let current = by_note.entry(hashes.hash_one(&event.note)).or_insert_with(recorder);
        let mut outcome = timeout(PUBLISH_TIMEOUT, current.publish(&event, &about)).await;
        if matches!(&outcome, Ok(Err(kube::Error::Api(status))) if status.code == 404) {
            // The recorder took it for a repeat of an Event that somebody has deleted.
            *current = recorder();
            outcome = timeout(PUBLISH_TIMEOUT, current.publish(&event, &about)).await;
        }
        published += 1;
        let reason = event.reason;
        match outcome {
            Ok(Ok(())) => metrics.event("published"),
            Ok(Err(error)) => {
                metrics.event("failed");
                tracing::debug!(reason, "an Event was not published: {error}");
            }
            Err(_) => {
                metrics.event("failed");
                tracing::debug!(reason, "an Event was not published in time");
            }
        }
        if !is_awaited.load(Ordering::Relaxed) {
            sleep(EVENT_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::Config;
    use tokio::time::Instant;

    use super::*;
    use crate::testing::{Answer, answering};

    #[tokio::test(start_paused = true)]
    async fn a_repeat_has_the_same_words() {
        let (client, log) = answering(|sent| {
            let mut event = sent.body.clone();
            event["apiVersion"] = "events.k8s.io/v1".into();
            event["kind"] = "Event".into();
            Answer::Json(200, event)
        });
        let events = Events::over(client, "binder");
        let about = ObjectReference { uid: Some("u".into()), ..ObjectReference::default() };
        for note in ["first mistake", "second mistake", "second mistake"] {
            events.warn(&about, "InvalidBinding", note);
        }
        sleep(Duration::from_secs(1)).await;
        let told: Vec<_> =
            log.take().into_iter().map(|sent| (sent.verb, sent.body["note"].clone())).collect();
        let [first, second] = ["first mistake", "second mistake"].map(serde_json::Value::from);
        let created = [("POST", &first), ("POST", &second)];
        assert!(
            told.iter().zip(created).all(|((method, note), wanted)| (method.as_str(), note) == wanted),
            "{told:?}"
        );
        assert_eq!((told.len(), told[2].0.as_str()), (3, "MERGE"), "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn flushing_publishes_what_is_queued_and_waits_no_longer_than_its_limit() {
        for (answer, is_published) in [(Answer::Done, true), (Answer::Silence, false)] {
            let (client, log) = answering(move |_| answer.clone());
            let events = Events::over(client, "binder");
            // Nothing else runs before the first await.
            for _ in 0..QUEUE {
                events.warn(&ObjectReference::default(), "TargetNotFound", "");
            }
            // A pause after each of them would take 20 s.
            let (limit, begun) = (Duration::from_secs(4), Instant::now());
            assert_eq!(events.flush(limit).await, is_published);
            assert_eq!(log.take().len(), if is_published { QUEUE } else { 0 });
            assert!(begun.elapsed() <= limit, "{:?}", begun.elapsed());
        }
    }

    #[tokio::test]
    async fn what_is_told_while_nothing_can_be_published_is_bounded() {
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let metrics = Arc::<Metrics>::default();
        let events = Events::new(client, "binder", "binder-0", metrics.clone());
        let about = ObjectReference::default();
        // Nothing else runs before the first await.
        for _ in 0..QUEUE {
            assert!(events.has_room());
            events.warn(&about, "TargetNotFound", "");
        }
        assert!(!events.has_room());
        (0..500).for_each(|_| events.warn(&about, "TargetNotFound", ""));
        let page = metrics.encode().unwrap();
        assert!(page.contains("catena_events_total{result=\"dropped\"} 500"), "{page}");
    }
}
