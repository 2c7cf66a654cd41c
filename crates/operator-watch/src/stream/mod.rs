//! Watches that each have their own backoff, so that one that fails does not delay the others.
//!
//! The stock `Controller` puts all its triggers behind one joint backoff: with one missing child CRD, events of every
//! other kind were delayed by up to 5.9 s.

mod requests;
#[cfg(test)]
mod tests;
mod watch_loop;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource, discovery::ApiResource, runtime::watcher::Event};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{
    sync::watch::{Receiver, Sender},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

pub use self::requests::Watch;
#[cfg(feature = "testing")]
pub(crate) use self::requests::{WatchLine, read_page};
use self::watch_loop::{UnreadableObjects, WatchBackoff, WatchLoop};
use crate::{
    Cache, Discovery, DynamicKind, DynamicRow, Failure, Lenient, Row, SeenVersion,
    cache::SharedRows,
    decode::Received,
    health::{ReadinessRule, WatchState, WatchStatus},
};

/// A watch in the background, which ends when this is dropped.
pub struct WatchHandle {
    state: Receiver<WatchState>,
    seen: SeenVersion,
    _task: AbortOnDropHandle<()>,
}

impl WatchHandle {
    /// The highest version that the watch has delivered, for a writer to wait for.
    #[must_use]
    pub fn seen_version(&self) -> &SeenVersion {
        &self.seen
    }

    /// The reason why the watch is unreliable, if it is: its first list is missing, or it keeps failing.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.state.borrow().problem()
    }

    /// Whether the watch fails because the cluster does not serve the kind, or not in this version.
    #[must_use]
    pub fn is_unserved(&self) -> bool {
        self.state.borrow().is_unserved()
    }

    /// The version that is watched instead of the wanted one while that is not served, of a kind that is watched [in any
    /// version](Watch::in_any_version).
    #[must_use]
    pub fn substitute(&self) -> Option<Arc<ApiResource>> {
        self.state.borrow().substitute.clone()
    }

    /// Waits until its task has ended, which it does only by a panic.
    pub async fn ended(&self) {
        // It fails when the task is gone.
        self.state.clone().wait_for(|_| false).await.ok();
    }

    /// Waits until the first list is complete, or has failed, but no longer than `limit`: usually, it takes only a moment.
    pub async fn first_list(&self, limit: Duration) {
        let mut state = self.state.clone();
        // Whoever asks sees in the problem whether it has come.
        timeout(limit, state.wait_for(WatchState::is_settled)).await.ok();
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        self.seen.end();
    }
}

/// Takes what watches report beside their objects, such as for metrics and Events. The log has it anyway.
pub trait Report: Send + Sync + 'static {
    /// A request of a watch of this kind has failed.
    fn failed(&self, _kind: &str) {}
    /// So many objects of this kind cannot be read now.
    fn unreadable(&self, _kind: &str, _count: usize) {}
    /// An object cannot be read because of this mistake: called again and again while that lasts.
    fn is_unreadable(&self, _object: &ObjectReference, _mistake: &str, _failure: &Failure) {}
    /// An object no longer has this mistake, or is gone.
    fn is_mended(&self, _object: &ObjectReference, _mistake: &str) {}
}

/// Takes nothing.
impl Report for () {}

/// Starts watches, and knows whether each works.
#[derive(Clone)]
pub struct Watches {
    /// Rises when a watch recovers, loses its kind or gets a new definition of it, and with the settings, because earlier
    /// findings may then be outdated.
    /// The rises of each watch are bounded, because each one ends the backoff of every object.
    pub requeue_epoch: Sender<u64>,
    /// In the order of their kinds.
    pub(crate) states: Arc<Mutex<Vec<Receiver<WatchState>>>>,
    report: Arc<dyn Report>,
}

impl Default for Watches {
    fn default() -> Self {
        Self::new(Arc::new(()))
    }
}

impl Watches {
    /// Watches whose failures and unreadable objects are reported to `report`.
    #[must_use]
    pub fn new(report: Arc<dyn Report>) -> Self {
        Self { requeue_epoch: Sender::default(), states: Arc::default(), report }
    }

    /// Passes every object that exists, comes, changes or goes to `changed`, and keeps none of them, so that one that goes
    /// before a new list is not passed. The process is ready even without this watch.
    pub fn watch_changes<K: Resource + DeserializeOwned + Send + 'static>(
        &self,
        watch: Watch<K>,
        changed: impl Fn(&K) + Send + Sync + 'static,
    ) -> WatchHandle {
        let status = self.status(&watch.kind, ReadinessRule::Never);
        self.start(watch, status, SeenVersion::default(), move |event| {
            if let Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) = &event
                && let Ok(object) = &object.0
            {
                changed(object);
            }
        })
    }

    /// Keeps a cache of the watched objects, each pruned to a row, and passes each row that comes, changes or goes to
    /// `changed`. Dropping the cache ends the watch. While the kind is not served, the process is ready nevertheless,
    /// and [`WatchHandle::problem`] reports it.
    pub fn cache<K: Resource + DeserializeOwned + Send + 'static, R: Row>(
        &self,
        watch: Watch<K>,
        prune: impl Fn(K) -> R + Send + Sync + 'static,
        changed: impl Fn(&R) + Send + Sync + 'static,
    ) -> Arc<Cache<R>> {
        let status = self.status(&watch.kind, ReadinessRule::WhileServed);
        let changed =
            move |_: &SharedRows<R>, _, affected: Vec<Arc<R>>| affected.iter().for_each(|row| changed(row));
        self.fill(watch, status, SeenVersion::default(), prune, changed)
    }

    /// Keeps all objects of the kind `K`, which a controller needs to be ready, and how far the watch is. Those that come or
    /// change, and those that are gone, are passed to `changed`, with whether they are all of a new list and those that it lacks.
    pub fn cache_primaries<K>(
        &self,
        client: &Client,
        seen: SeenVersion,
        changed: impl FnMut(bool, Vec<Arc<K>>, Vec<Arc<K>>) + Send + Sync + 'static,
    ) -> Arc<Cache<K>>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Send + Sync + 'static,
    {
        let watch = Watch::<Lenient<K>>::all(client, &());
        let status = self.status(&watch.kind, ReadinessRule::Always);
        self.fill(watch, status, seen, |Lenient(object)| object, apart(changed))
    }

    /// Like [`Self::cache_primaries`], for a kind of many, in whichever version of it is served. The process is ready even
    /// without it.
    pub fn cache_kind<R: Send + Sync + 'static>(
        &self,
        kind: DynamicKind<R>,
        client: &Client,
        served: &Discovery,
        changed: impl FnMut(bool, Vec<Arc<DynamicRow<R>>>, Vec<Arc<DynamicRow<R>>>) + Send + Sync + 'static,
    ) -> Arc<Cache<DynamicRow<R>>> {
        let name = format!("{} ({})", kind.resource.kind, kind.id);
        let (status, seen) = (self.status(&name, ReadinessRule::Never), SeenVersion::default());
        let mut watch = Watch::all(client, &*kind.resource).called(name).in_any_version(served);
        (watch.labels, watch.is_metadata_only) = (kind.selector.clone(), kind.is_metadata_only);
        let prune = kind.pruning(&seen, status.subscribe());
        self.fill(watch, status, seen, prune, apart(changed))
    }

    fn fill<K: Resource + DeserializeOwned + Send + 'static, R: Row>(
        &self,
        watch: Watch<K>,
        status: WatchStatus,
        seen: SeenVersion,
        mut prune: impl FnMut(K) -> R + Send + Sync + 'static,
        mut changed: impl FnMut(&SharedRows<R>, bool, Vec<Arc<R>>) + Send + Sync + 'static,
    ) -> Arc<Cache<R>> {
        let rows = SharedRows::default();
        let filled = rows.clone();
        let watch = self.start(watch, status, seen, move |event| {
            let is_list = matches!(event, Event::InitDone);
            let affected = filled.write().take(event, |object| Arc::new(prune(object)));
            changed(&filled, is_list, affected);
        });
        Arc::new(Cache { rows, watch })
    }

    /// Starts a watch that passes each event to `take`.
    fn start<K: Resource + DeserializeOwned + Send + 'static>(
        &self,
        watch: Watch<K>,
        mut status: WatchStatus,
        seen: SeenVersion,
        take: impl FnMut(Event<Received<K>>) + Send + Sync + 'static,
    ) -> WatchHandle {
        if watch.versions.is_some() {
            status.in_any_version();
        }
        let state = status.subscribe();
        let watch_loop = WatchLoop {
            unreadable: UnreadableObjects::of(&watch, self.report.clone()),
            watch,
            status,
            seen: seen.clone(),
            backoff: WatchBackoff::default(),
            take,
        };
        WatchHandle { state, seen, _task: AbortOnDropHandle::new(tokio::spawn(watch_loop.run())) }
    }
}

/// Passes the rows that are there and those that are gone apart.
fn apart<R: Row>(
    mut changed: impl FnMut(bool, Vec<Arc<R>>, Vec<Arc<R>>) + Send + Sync + 'static,
) -> impl FnMut(&SharedRows<R>, bool, Vec<Arc<R>>) + Send + Sync + 'static {
    move |rows, is_list, affected| {
        let is_present = |row: &Arc<R>| rows.read().row(row.id().uid).is_some();
        let (present, gone) = affected.into_iter().partition(is_present);
        changed(is_list, present, gone);
    }
}
