//! Watches that each have their own backoff, so that one that fails does not delay the others.
//!
//! The stock `Controller` puts all its triggers behind one joint backoff: with one missing child CRD, events of every
//! other kind were delayed by up to 5.9 s.

mod backoff;
mod change;
mod follow;
mod items;
mod page;
mod source;
#[cfg(test)]
mod tests;
mod unreadable;

use std::sync::{Arc, OnceLock};

use kube::{Api, Resource, runtime::watcher::Event};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

pub(super) use self::page::page;
use self::source::Source;
#[cfg(feature = "testing")]
pub(crate) use self::{change::read_change, page::read_page};
pub(crate) use self::{follow::Follower, unreadable::Unread};
use crate::{
    report::{
        Events,
        health::{Health, Need, WatchStatus},
        metrics::Metrics,
    },
    watch::{Cache, Row, TrimmedObject, Watermark, lenient::Place, readable},
};

/// The objects to watch, and the name of their kind in messages.
pub struct Watch<K> {
    kind: String,
    source: Source<K>,
}

impl<K: Resource + Clone + DeserializeOwned + Send + 'static> Watch<K> {
    /// Watches everything that `api` covers. `kind` is its name in messages.
    #[must_use]
    pub fn new(api: Api<K>, kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), source: Source::of(api) }
    }
}

impl Watch<TrimmedObject> {
    /// Watches only the metadata of everything that `api` covers; the other fields are not there.
    #[must_use]
    pub fn metadata(api: Api<TrimmedObject>, kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), source: Source::of(api).metadata_only() }
    }
}

impl<K> Watch<K> {
    /// The watched kind, for messages.
    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// Narrows the watch to objects with a label; others never reach this process.
    #[must_use]
    pub fn labelled(mut self, selector: &str) -> Self {
        self.source.labels = Some(selector.to_owned());
        self
    }
}

/// A watch in the background, ended when dropped.
#[derive(Default)]
pub(crate) struct Task {
    pub status: Arc<WatchStatus>,
    /// The highest version that it has delivered.
    pub seen: Watermark,
    handle: OnceLock<JoinHandle<()>>,
}

impl Task {
    pub fn of(status: Arc<WatchStatus>, seen: Watermark) -> Self {
        Self { status, seen, handle: OnceLock::new() }
    }

    pub fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        // The cell is empty: a task runs one watch.
        let _ = self.handle.set(tokio::spawn(work));
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

/// A watch that keeps no objects.
pub struct Notices {
    task: Task,
}

impl Notices {
    /// The highest version that the watch has delivered, for [`crate::write::Writer`] to wait for.
    #[must_use]
    pub fn seen(&self) -> &Watermark {
        &self.task.seen
    }

    /// Whether the watch fails because the cluster does not serve the kind, or not in this version.
    #[must_use]
    pub fn is_unserved(&self) -> bool {
        self.task.status.is_unserved()
    }

    /// The reason why the watch fails, if it does.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.task.status.problem()
    }
}

/// Starts watches; each has its status in the health of the process.
#[derive(Clone, Default)]
pub struct Watches {
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    /// Without them, unreadable objects are only logged and counted.
    pub(crate) events: Option<Events>,
}

impl Watches {
    /// Passes every object that exists, comes, changes or goes to `changed`, and keeps none of them. The process is
    /// ready even without this watch. Dropping the result ends the watch.
    pub fn notice<K>(&self, watch: Watch<K>, changed: impl Fn(&K) + Send + Sync + 'static) -> Notices
    where
        K: Resource + Clone + DeserializeOwned + Send + 'static,
    {
        let task = Task::of(self.health.watch(&watch.kind, Need::Never), Watermark::default());
        let unread = self.unread(&watch.kind);
        let follower = Follower::new(watch, &task, self.metrics.clone(), unread, move |event| {
            if let Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) = &event
                && let Ok(object) = &object.0
            {
                changed(object);
            }
        });
        task.run(follower.run());
        Notices { task }
    }

    /// Keeps a cache of the watched objects, each trimmed to a row, and passes each row that comes, changes or goes to
    /// `changed`. Dropping the cache ends the watch. While the kind is not served, the process is ready nevertheless,
    /// and [`Cache::problem`] reports it.
    pub fn cache<K, R>(
        &self,
        watch: Watch<K>,
        trim: impl Fn(K) -> R + Send + Sync + 'static,
        changed: impl Fn(&R) + Send + Sync + 'static,
    ) -> Arc<Cache<R>>
    where
        K: Resource + Clone + DeserializeOwned + Send + 'static,
        R: Row,
    {
        let unread = self.unread(&watch.kind);
        let status = self.health.watch(&watch.kind, Need::WhileServed);
        let cache = Arc::new(Cache::new(Task::of(status, Watermark::default())));
        let weak = Arc::downgrade(&cache);
        let follower = Follower::new(watch, &cache.task, self.metrics.clone(), unread, move |event| {
            let Some(cache) = weak.upgrade() else { return };
            let known = |place: &Place| cache.row(place.uid.as_deref()?);
            if let Some(event) = readable(event, |object| Arc::new(trim(object)), known) {
                cache.take(event, &changed);
            }
        });
        cache.task.run(follower.run());
        cache
    }

    /// The reports about unreadable objects of a kind.
    pub(crate) fn unread(&self, kind: &str) -> Unread {
        Unread::new(kind, self.events.clone(), self.metrics.clone())
    }
}
