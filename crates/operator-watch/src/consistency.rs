//! Read your own writes.
//!
//! After a write, the next decision on the object waits until the cache has reached the resourceVersion that
//! the server answered with. kube-controller-manager does so since 1.36 (KEP-5647), and resource versions may
//! be compared (KEP-5504).

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kube::discovery::ApiResource;
use parking_lot::Mutex;

use tokio::time::Instant;

/// Longest wait of a decision. The watches of an overloaded API server lag by up to 20 s, and premature decisions add
/// to its load; only a broken watch takes this long. Safety does not depend on the wait, because names are
/// deterministic and deletions carry a uid.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(60);

/// The highest resourceVersion that a watch has delivered since its last list.
#[derive(Clone, Debug, Default)]
pub struct Watermark(Arc<AtomicU64>);

impl Watermark {
    /// A watermark for objects that no watch shows: nothing waits for it.
    #[must_use]
    pub fn unwatched() -> Self {
        let seen = Self::default();
        seen.end();
        seen
    }

    /// Ends the watch, so that nothing waits for it any more.
    pub fn end(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }

    pub fn observe(&self, resource_version: Option<&str>) {
        if let Some(version) = number(resource_version) {
            self.0.fetch_max(version, Ordering::Relaxed);
        }
    }

    /// Begins anew at the version of a complete list. It is lower than before if the server's data was restored from a backup.
    pub fn listed(&self, resource_version: &str) {
        let Some(version) = number(Some(resource_version)) else { return };
        let is_watched = |seen: u64| (seen != u64::MAX).then_some(version);
        // The task of a watch that has ended may complete a list before it is aborted.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_watched);
    }

    /// Whether there is a watch.
    pub fn is_watched(&self) -> bool {
        self.version() != u64::MAX
    }

    fn version(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A kind that is written, and the watch that shows what was written.
#[derive(Clone, Debug)]
pub struct WatchedResource {
    /// The kind.
    pub resource: Arc<ApiResource>,
    /// How far its watch is.
    pub seen: Watermark,
}

impl WatchedResource {
    /// A kind whose watch is known.
    pub fn new(resource: impl Into<Arc<ApiResource>>, seen: &Watermark) -> Self {
        Self { resource: resource.into(), seen: seen.clone() }
    }

    /// A kind that is not watched: nothing waits for its writes.
    pub fn unwatched(resource: impl Into<Arc<ApiResource>>) -> Self {
        Self { resource: resource.into(), seen: Watermark::unwatched() }
    }
}

struct Awaited {
    seen: Watermark,
    /// How far the watch was at the write.
    since: u64,
    version: u64,
    until: Instant,
}

impl Awaited {
    /// Whether the watch shows the write, or has gone back behind it and never will.
    fn is_over(&self) -> bool {
        let seen = self.seen.version();
        seen >= self.version || seen < self.since
    }
}

/// The writes of each object that its caches have yet to show, by the object's uid.
#[derive(Default)]
pub struct Consistency(Mutex<HashMap<String, Vec<Awaited>>>);

impl Consistency {
    /// Records a write for the object `uid`, which `seen` will show.
    pub fn wrote(&self, uid: &str, seen: &Watermark, resource_version: Option<&str>) {
        self.awaits(uid, seen, resource_version, CATCH_UP_TIMEOUT);
    }

    /// Records that decisions on the object `uid` wait until `seen` reaches a version, for some time at most.
    pub fn awaits(&self, uid: &str, seen: &Watermark, resource_version: Option<&str>, timeout: Duration) {
        let Some(version) = number(resource_version) else { return };
        let since = seen.version();
        if since >= version {
            return;
        }
        let mut awaited = self.0.lock();
        let writes = awaited.entry(uid.to_owned()).or_default();
        writes.retain(|write| !write.is_over());
        writes.push(Awaited { seen: seen.clone(), since, version, until: Instant::now() + timeout });
    }

    /// Whether the caches show every write for the object.
    pub fn is_current(&self, uid: &str) -> bool {
        let mut awaited = self.0.lock();
        let Some(writes) = awaited.get_mut(uid) else { return true };
        let now = Instant::now();
        writes.retain(|write| !write.is_over() && now < write.until);
        let current = writes.is_empty();
        if current {
            awaited.remove(uid);
        }
        current
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

fn number(resource_version: Option<&str>) -> Option<u64> {
    resource_version?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_decision_waits_for_its_own_write_and_for_no_other_object() {
        let (consistency, pods) = (Consistency::default(), Watermark::default());
        pods.observe(Some("10"));
        consistency.wrote("a", &pods, Some("12"));
        assert!(!consistency.is_current("a"));
        assert!(consistency.is_current("b"));
        pods.observe(Some("11"));
        assert!(!consistency.is_current("a"));
        pods.observe(Some("12"));
        assert!(consistency.is_current("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn each_cache_is_waited_for_by_itself() {
        let (consistency, pods, own) = (Consistency::default(), Watermark::default(), Watermark::default());
        consistency.wrote("a", &pods, Some("5"));
        consistency.wrote("a", &own, Some("6"));
        own.observe(Some("9"));
        assert!(!consistency.is_current("a"));
        pods.observe(Some("5"));
        assert!(consistency.is_current("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn no_decision_waits_for_a_write_that_was_lost_with_the_data_of_the_server() {
        let (consistency, pods) = (Consistency::default(), Watermark::default());
        pods.listed("1000");
        consistency.wrote("a", &pods, Some("1010"));
        assert!(!consistency.is_current("a"));
        pods.listed("500");
        assert!(consistency.is_current("a"));
        consistency.wrote("a", &pods, Some("510"));
        assert!(!consistency.is_current("a"), "the versions from before no longer count");
        pods.observe(Some("510"));
        assert!(consistency.is_current("a"));
    }

    #[test]
    fn a_watch_that_has_ended_stays_ended() {
        let seen = Watermark::unwatched();
        seen.listed("5");
        assert!(!seen.is_watched());
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_never_comes_back_does_not_block_for_ever() {
        let (consistency, pods) = (Consistency::default(), Watermark::default());
        consistency.wrote("a", &pods, Some("5"));
        tokio::time::advance(CATCH_UP_TIMEOUT).await;
        assert!(consistency.is_current("a"));
    }
}
