use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event as EventObject},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::PostParams,
    runtime::events::{Event, EventType},
};
use operator_templates::Digest;
use operator_watch::{Failure, Report};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout},
};

use super::metrics::Metrics;

/// Maximum length of a note in the Events API, in bytes.
const MAX_NOTE: usize = 1024;
/// Maximum length of an action, and of the name of the reporting instance, in bytes.
const MAX_NAME: usize = 128;
/// Time limit for publishing one Event.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of queued Events; more are dropped.
const MAX_QUEUED: usize = 1000;
/// Delay before something is told that the queue had no room for.
const QUEUE_RETRY: Duration = Duration::from_secs(60);
/// Pause after each Event, unless somebody waits for the last one: at most 50 a second.
const EVENT_INTERVAL: Duration = Duration::from_millis(20);
/// The default lifetime of Events in the API server.
const EVENT_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Minimum time before a warning is repeated, so that it does not expire.
const REPEAT_INTERVAL: Duration = Duration::from_secs(30 * 60);
/// Maximum additional time, constant for each object, so that objects which began together spread out.
const REPEAT_SPREAD: Duration = Duration::from_secs(20 * 60);

/// The topic of Events about unreadable objects.
const UNREADABLE: &str = "unreadable";

/// Publishes Events about objects: best effort, never a reason to fail. They are published one after another in the
/// background, from a bounded queue. What lasts is told at most once an Event's lifetime, or twice if it is a warning.
#[derive(Clone)]
pub struct Events {
    controller: Arc<str>,
    instance: Arc<str>,
    queue: mpsc::UnboundedSender<Box<EventObject>>,
    /// The number of Events that are neither published nor have failed; each receiver is somebody who waits for none.
    queued: watch::Sender<usize>,
    /// The last Event about each lasting state, by a digest of the object and the topic. An hour of Events is their bound.
    lasting: Arc<Mutex<HashMap<u64, LastEvent>>>,
    pub(crate) metrics: Arc<Metrics>,
}

/// The last Event about a lasting state.
struct LastEvent {
    /// A digest of the state.
    state: u64,
    at: Instant,
}

/// What became of an Event about a lasting state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Whether it was queued. If not, it was told a short time ago, or the queue is full.
    pub is_queued: bool,
    /// Time after which it is to be told again if it still lasts.
    pub due_in: Duration,
}

fn event(type_: EventType, reason: &'static str, note: &str) -> Event {
    let (reason, action, note) = (reason.into(), "Reconcile".into(), Some(note.into()));
    Event { type_, reason, note, action, secondary: None }
}

impl Events {
    /// An Event of the type `Warning`. The reason must not contain variable parts.
    #[must_use]
    pub fn warning(reason: &'static str, note: &str) -> Event {
        event(EventType::Warning, reason, note)
    }

    /// An Event of the type `Normal`. The reason must not contain variable parts.
    #[must_use]
    pub fn normal(reason: &'static str, note: &str) -> Event {
        event(EventType::Normal, reason, note)
    }

    pub(crate) fn new(client: Client, controller: &str, instance: &str, metrics: Arc<Metrics>) -> Self {
        let (queue, events) = mpsc::unbounded_channel();
        let queued = watch::Sender::default();
        tokio::spawn(publish(client, events, metrics.clone(), queued.clone()));
        let (controller, instance) = (controller.into(), Failure::clip(instance, MAX_NAME).into());
        Self { controller, instance, queue, queued, lasting: Arc::default(), metrics }
    }

    /// Publishes an Event about something that has happened. Its texts are cut to the lengths that the API takes. Nothing is
    /// published about an object that is not known.
    pub fn publish<'o>(&self, about: impl Into<Option<&'o ObjectReference>>, event: Event) {
        if about.into().is_some_and(|about| !self.enqueue(about, event)) {
            self.metrics.event("dropped");
        }
    }

    /// Publishes an Event about a state that may last, and is called again and again while it does: at once if the last
    /// state that was told about this topic of the object is another one, and then again, a warning before its Event
    /// expires, anything else after that. Whatever else the words contain, such as a number that grows, is no news.
    pub fn publish_lasting<'o>(
        &self,
        about: impl Into<Option<&'o ObjectReference>>,
        topic: impl Hash,
        state: impl Hash,
        event: Event,
    ) -> Repeat {
        let Some(about) = about.into() else { return Repeat { is_queued: false, due_in: QUEUE_RETRY } };
        let (subject, state) = (subject(about, topic), digest(state));
        let interval = match event.type_ {
            EventType::Normal => EVENT_LIFETIME,
            EventType::Warning => REPEAT_INTERVAL + REPEAT_SPREAD * u32::from(subject.to_be_bytes()[0]) / 256,
        };
        let mut lasting = self.lasting.lock();
        let known = lasting.get(&subject).filter(|last| last.state == state);
        let due_in = known.map_or(Duration::ZERO, |last| interval.saturating_sub(last.at.elapsed()));
        if !due_in.is_zero() {
            return Repeat { is_queued: false, due_in };
        }
        if !self.enqueue(about, event) {
            return Repeat { is_queued: false, due_in: QUEUE_RETRY };
        }
        if lasting.len() == lasting.capacity() {
            // The older ones would be told anyway.
            lasting.retain(|_, last| last.at.elapsed() < EVENT_LIFETIME);
        }
        lasting.insert(subject, LastEvent { state, at: Instant::now() });
        Repeat { is_queued: true, due_in: interval }
    }

    /// Records that a lasting state is over: if it comes back, that is news.
    pub fn resolved(&self, about: &ObjectReference, topic: impl Hash) {
        self.lasting.lock().remove(&subject(about, topic));
    }

    /// Whether the queue has room for another Event; otherwise it would be dropped. After an await, somebody else may have
    /// taken it.
    #[must_use]
    pub fn has_capacity(&self) -> bool {
        *self.queued.borrow() < MAX_QUEUED
    }

    /// Waits until every queued Event has been published or has failed, at most for this time, and without pauses between
    /// them. Returns whether it is so; Events that are still queued when the process ends are lost.
    pub async fn flush(&self, limit: Duration) -> bool {
        timeout(limit, self.queued.subscribe().wait_for(|queued| *queued == 0)).await.is_ok()
    }

    /// Returns whether the queue had room.
    fn enqueue(&self, about: &ObjectReference, event: Event) -> bool {
        let has_capacity = self.queued.send_if_modified(|queued| {
            let has_capacity = *queued < MAX_QUEUED;
            *queued += usize::from(has_capacity);
            has_capacity
        });
        if !has_capacity {
            return false;
        }
        let now = Timestamp::now();
        // An Event may not have each name that some kinds may have.
        let prefix = Digest::short(&[&self.instance, about.name.as_deref().unwrap_or_default()]);
        let type_ = match event.type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        let event = EventObject {
            metadata: ObjectMeta {
                name: Some(format!("{prefix}.{:x}", now.as_nanosecond())),
                // Those about objects without a namespace are in this one.
                namespace: about.namespace.clone().or_else(|| Some("default".into())),
                ..ObjectMeta::default()
            },
            type_: Some(type_.into()),
            reason: Some(event.reason),
            action: Some(Failure::clip(&event.action, MAX_NAME)),
            note: event.note.map(|note| Failure::clip(&note, MAX_NOTE)),
            event_time: Some(MicroTime(now)),
            regarding: Some(about.clone()),
            related: event.secondary,
            reporting_controller: Some(self.controller.to_string()),
            reporting_instance: Some(self.instance.to_string()),
            ..EventObject::default()
        };
        // Its receiver ends with this sender.
        self.queue.send(Box::new(event)).is_ok()
    }
}

/// Counts the failures of watches and their unreadable objects, and reports each of these.
impl Report for Events {
    fn failed(&self, kind: &str) {
        self.metrics.watch_errors.get_or_create(&Metrics::of(kind)).inc();
    }

    fn unreadable(&self, kind: &str, count: usize) {
        self.metrics.unreadable.get_or_create(&Metrics::of(kind)).set(count as u64);
    }

    fn is_unreadable(&self, object: &ObjectReference, mistake: &str, failure: &Failure) {
        // Another watch may find something else wrong with it.
        let event = Events::warning(failure.reason, &failure.message);
        self.publish_lasting(object, (UNREADABLE, mistake), (), event);
    }

    fn is_mended(&self, object: &ObjectReference, mistake: &str) {
        self.resolved(object, (UNREADABLE, mistake));
    }
}

fn subject(about: &ObjectReference, topic: impl Hash) -> u64 {
    digest((&about.kind, &about.namespace, &about.name, &about.uid, topic))
}

fn digest(value: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Publishes queued Events until the queue is closed.
async fn publish(
    client: Client,
    mut events: mpsc::UnboundedReceiver<Box<EventObject>>,
    metrics: Arc<Metrics>,
    queued: watch::Sender<usize>,
) {
    while let Some(event) = events.recv().await {
        let api = Api::namespaced(client.clone(), event.metadata.namespace.as_deref().unwrap_or_default());
        match timeout(PUBLISH_TIMEOUT, api.create(&PostParams::default(), &*event)).await {
            Ok(Ok(_)) => metrics.event("published"),
            failed => {
                metrics.event("failed");
                tracing::debug!(reason = event.reason, ?failed, "an Event was not published");
            }
        }
        queued.send_modify(|queued| *queued -= 1);
        if queued.receiver_count() == 0 {
            sleep(EVENT_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests;
