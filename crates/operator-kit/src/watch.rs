//! Watches that each have their own backoff, so that one that fails does not delay the others.
//!
//! The stock `Controller` puts all its triggers behind one joint backoff: with one missing child CRD, events
//! of every other kind came up to 5.9 s late.

use std::{
    fmt::Debug,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use kube::{
    Api, Resource,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        utils::Backoff,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    Cache, Row, Seen, TrimmedObject,
    health::{Health, WatchFailure, WatchStatus},
    metrics::Metrics,
};

/// Seconds after which the server ends a watch, so that a dead connection is noticed soon.
const WATCH_SECONDS: u32 = 60;
/// Objects per page of a list: a page of whole pods is decoded in memory at once.
const PAGE: u32 = 250;

/// What to watch.
pub struct Watch<K> {
    kind: String,
    config: watcher::Config,
    start: Box<dyn FnOnce(watcher::Config) -> Events<K> + Send>,
}

type Events<K> = BoxStream<'static, watcher::Result<Event<K>>>;

impl<K: Resource + Clone + DeserializeOwned + Debug + Send + 'static> Watch<K> {
    /// Watches everything that `api` covers. `kind` is for people.
    #[must_use]
    pub fn new(api: Api<K>, kind: impl Into<String>) -> Self {
        Self::started_by(kind, move |config| watcher(api, config).backoff(WatchBackoff::default()).boxed())
    }
}

impl Watch<TrimmedObject> {
    /// Watches only the metadata of everything that `api` covers; the other fields are null.
    #[must_use]
    pub fn metadata(api: Api<PartialObjectMeta<TrimmedObject>>, kind: impl Into<String>) -> Self {
        Self::started_by(kind, move |config| {
            let events = watcher(api, config).backoff(WatchBackoff::default());
            events.map_ok(|event| map(event, TrimmedObject::of_metadata)).boxed()
        })
    }
}

impl<K> Watch<K> {
    fn started_by(
        kind: impl Into<String>,
        start: impl FnOnce(watcher::Config) -> Events<K> + Send + 'static,
    ) -> Self {
        let config = watcher::Config::default().timeout(WATCH_SECONDS).page_size(PAGE);
        Self { kind: kind.into(), config, start: Box::new(start) }
    }

    /// What is watched, for people.
    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// Lists so many objects a page.
    pub(crate) fn in_pages_of(mut self, count: u32) -> Self {
        self.config = self.config.page_size(count);
        self
    }

    /// Narrows the watch to objects with a label; others never reach this process.
    #[must_use]
    pub fn labelled(mut self, selector: &str) -> Self {
        self.config = self.config.labels(selector);
        self
    }
}

/// A watch in the background, ended when dropped.
#[derive(Default)]
pub(crate) struct Task {
    pub status: Arc<WatchStatus>,
    /// What it has delivered.
    pub seen: Seen,
    handle: OnceLock<JoinHandle<()>>,
}

impl Task {
    fn of(status: Arc<WatchStatus>) -> Self {
        Self { status, seen: Seen::default(), handle: OnceLock::new() }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.get() {
            handle.abort();
        }
        self.status.ended();
        self.seen.end();
    }
}

/// A watch of which nothing is kept.
pub struct Notices {
    task: Task,
}

impl Notices {
    /// What the watch has delivered, for [`crate::Writer`] to wait for.
    #[must_use]
    pub fn seen(&self) -> &Seen {
        &self.task.seen
    }

    /// Whether nothing is noticed because the cluster does not serve the kind, or not in this version.
    #[must_use]
    pub fn is_unserved(&self) -> bool {
        self.task.status.is_unserved()
    }

    /// Why nothing is noticed, if so.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.task.status.problem()
    }
}

/// Starts watches; each has its status in [`Health`].
#[derive(Clone, Default)]
pub struct Watches {
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Watches {
    /// Tells `changed` every object that is there, comes, changes or goes, and keeps none of them. The process is
    /// ready also without this watch. It ends when the answer is dropped.
    pub fn notice<K>(&self, watch: Watch<K>, changed: impl Fn(&K) + Send + Sync + 'static) -> Notices
    where
        K: Resource + Send + 'static,
    {
        let notices = Notices { task: Task::of(self.health.optional_watch(&watch.kind)) };
        let (status, metrics, seen) =
            (notices.task.status.clone(), self.metrics.clone(), notices.seen().clone());
        let follow = async move {
            let mut shown = Shown::default();
            follow(watch, &status, &metrics, |event| {
                shown.hear(&event);
                if let Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) = &event {
                    changed(object);
                }
                shown.tell(&seen);
            })
            .await;
        };
        // The cell is empty: these notices are new.
        let _ = notices.task.handle.set(tokio::spawn(follow));
        notices
    }

    /// Keeps a cache of what is watched, each object cut down to a row, and tells `changed` each row that
    /// came, changed or went. Dropping the cache ends the watch.
    pub fn cache<K, R>(
        &self,
        watch: Watch<K>,
        trim: impl Fn(K) -> R + Send + Sync + 'static,
        changed: impl Fn(&R) + Send + Sync + 'static,
    ) -> Arc<Cache<R>>
    where
        K: Resource + Send + 'static,
        R: Row,
    {
        let cache = Arc::new(Cache::new(Task::of(self.health.watch(&watch.kind))));
        let weak = Arc::downgrade(&cache);
        let (status, metrics, seen) = (cache.task.status.clone(), self.metrics.clone(), cache.seen().clone());
        let task = async move {
            let mut shown = Shown::default();
            follow(watch, &status, &metrics, |event| {
                let Some(cache) = weak.upgrade() else { return };
                shown.hear(&event);
                cache.take(map(event, &trim), &changed);
                // Only now may a reader rely on it.
                shown.tell(&seen);
            })
            .await;
        };
        // The cell is empty: this cache is new.
        let _ = cache.task.handle.set(tokio::spawn(task));
        cache
    }
}

/// Follows a watch for ever.
pub(crate) async fn follow<K>(
    watch: Watch<K>,
    status: &WatchStatus,
    metrics: &Metrics,
    mut take: impl FnMut(Event<K>),
) {
    let Watch { kind, config, start } = watch;
    let mut events = start(config);
    loop {
        let next = events.next();
        let event = if status.is_failing() {
            // A watch that starts again says nothing until an object changes.
            let Ok(event) = tokio::time::timeout(RECOVERED, next).await else {
                status.alive();
                continue;
            };
            event
        } else {
            next.await
        };
        match event {
            Some(Ok(event)) => {
                let is_listing = matches!(event, Event::Init | Event::InitApply(_));
                let is_listed = matches!(event, Event::InitDone);
                take(event);
                // After the first list and after each relist, the caches are complete only with its end.
                if is_listed && status.synced() {
                    tracing::info!(kind, "watching");
                } else if !is_listing {
                    status.alive();
                }
            }
            Some(Err(error)) => {
                metrics.watch_failed(&kind);
                let failure = explain(&kind, &error);
                if status.failed(failure.clone()) {
                    tracing::warn!(kind, "{}", failure.text());
                }
            }
            None => return,
        }
    }
}

/// The versions that a cache shows: those of a list only when it is complete.
#[derive(Default)]
pub(crate) struct Shown {
    versions: Vec<String>,
    is_listing: bool,
}

impl Shown {
    pub fn hear<K: Resource>(&mut self, event: &Event<K>) {
        match event {
            Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) => {
                self.versions.extend(object.meta().resource_version.clone());
            }
            Event::Init => {
                // A list that failed half way begins anew.
                self.versions.clear();
                self.is_listing = true;
            }
            Event::InitDone => self.is_listing = false,
        }
    }

    pub fn tell(&mut self, seen: &Seen) {
        if !self.is_listing {
            for version in self.versions.drain(..) {
                seen.observe(Some(&version));
            }
        }
    }
}

pub(crate) fn map<K, R>(event: Event<K>, trim: impl FnOnce(K) -> R) -> Event<R> {
    match event {
        Event::Apply(object) => Event::Apply(trim(object)),
        Event::Delete(object) => Event::Delete(trim(object)),
        Event::InitApply(object) => Event::InitApply(trim(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

fn explain(kind: &str, error: &watcher::Error) -> WatchFailure {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    let (InitialListFailed(kube::Error::Api(status))
    | WatchStartFailed(kube::Error::Api(status))
    | WatchFailed(kube::Error::Api(status))) = error
    else {
        return WatchFailure::Other(format!("{kind} cannot be watched: {error}; trying again"));
    };
    let message = &status.message;
    match status.code {
        404 => WatchFailure::NotServed(format!(
            "{kind} is not served by the cluster: install its CustomResourceDefinition; the watch starts by itself then"
        )),
        403 => WatchFailure::Other(format!(
            "{kind} may not be watched: {message}; grant get, list and watch on it to this ServiceAccount"
        )),
        _ => WatchFailure::Other(format!("{kind} cannot be watched: {message}; trying again")),
    }
}

/// 0.8 s doubling to 10 s with jitter: what is missing is found within seconds of its arrival.
struct WatchBackoff {
    next: Duration,
    last: Option<Instant>,
}

const SHORTEST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(10);
/// A watch that has not failed again for this long works: longer than the longest backoff and the time in which
/// a connection is given up.
const RECOVERED: Duration = Duration::from_secs(25);

impl Default for WatchBackoff {
    fn default() -> Self {
        Self { next: SHORTEST, last: None }
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let delay = self.next.mul_f64(0.8 + 0.2 * rand::random::<f64>());
        self.next = (self.next * 2).min(LONGEST);
        self.last = Some(Instant::now());
        Some(delay)
    }
}

impl Backoff for WatchBackoff {
    /// The stream asks for this at every item, and gives one before each list that it tries.
    fn reset(&mut self) {
        if self.last.is_some_and(|last| last.elapsed() > RECOVERED) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;
    use crate::consistency::Consistency;

    struct Pod;

    impl Row for Pod {
        fn uid(&self) -> &'static str {
            "pod"
        }
        fn namespace(&self) -> &'static str {
            ""
        }
        fn group(&self) -> Option<&str> {
            None
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_what_a_watch_that_ended_would_have_shown() {
        let watches = Watches::default();
        let silent = Watch::<TrimmedObject>::started_by("Pod", |_| stream::pending().boxed());
        let cache = watches.cache(silent, |_| Pod, |_| {});
        let consistency = Consistency::default();
        consistency.wrote("owner", cache.seen(), Some("5"));
        assert!(!consistency.is_current("owner"));
        drop(cache);
        assert!(consistency.is_current("owner"));
    }
}
