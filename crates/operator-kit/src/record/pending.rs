//! Read your own writes.
//!
//! After a write, the next decision on the object waits until the cache has reached the resourceVersion that
//! the server answered with. kube-controller-manager does so since 1.36 (KEP-5647), and resource versions may
//! be compared (KEP-5504).

use std::time::Duration;

use tokio::time::Instant;

use crate::watch::{Watermark, version_number};

/// Longest wait of a decision. The watches of an overloaded API server lag by up to 20 s, and premature decisions add
/// to its load; only a broken watch takes this long. Safety does not depend on the wait, because names are
/// deterministic and deletions carry a uid.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(60);

/// The writes that the caches of an object have yet to show.
#[derive(Default)]
pub(crate) struct Pending(Vec<PendingVersion>);

struct PendingVersion {
    seen: Watermark,
    /// How far the watch was at the write.
    since: u64,
    version: u64,
    until: Instant,
}

impl PendingVersion {
    /// Whether the watch shows the write, or has gone back behind it and never will.
    fn is_over(&self) -> bool {
        let seen = self.seen.version();
        seen >= self.version || seen < self.since
    }
}

impl Pending {
    /// Records a write, which `seen` will show.
    pub fn wrote(&mut self, seen: &Watermark, resource_version: Option<&str>) {
        self.awaits(seen, resource_version, CATCH_UP_TIMEOUT);
    }

    /// Records that decisions wait until `seen` reaches a version, for some time at most.
    pub fn awaits(&mut self, seen: &Watermark, resource_version: Option<&str>, timeout: Duration) {
        let Some(version) = version_number(resource_version) else { return };
        let since = seen.version();
        if since < version {
            self.0.retain(|write| !write.is_over());
            let until = Instant::now() + timeout;
            self.0.push(PendingVersion { seen: seen.clone(), since, version, until });
        }
    }

    /// Whether the caches show every write.
    pub fn is_current(&mut self) -> bool {
        let now = Instant::now();
        self.0.retain(|write| !write.is_over() && now < write.until);
        self.0.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_decision_waits_for_its_own_write() {
        let (mut pending, pods) = (Pending::default(), Watermark::default());
        pods.observe(Some("10"));
        pending.wrote(&pods, Some("12"));
        assert!(!pending.is_current());
        pods.observe(Some("11"));
        assert!(!pending.is_current());
        pods.observe(Some("12"));
        assert!(pending.is_current());
    }

    #[tokio::test(start_paused = true)]
    async fn each_cache_is_waited_for_by_itself() {
        let (mut pending, pods, own) = (Pending::default(), Watermark::default(), Watermark::default());
        pending.wrote(&pods, Some("5"));
        pending.wrote(&own, Some("6"));
        own.observe(Some("9"));
        assert!(!pending.is_current());
        pods.observe(Some("5"));
        assert!(pending.is_current());
    }

    #[tokio::test(start_paused = true)]
    async fn no_decision_waits_for_a_write_that_was_lost_with_the_data_of_the_server() {
        let (mut pending, pods) = (Pending::default(), Watermark::default());
        pods.listed("1000");
        pending.wrote(&pods, Some("1010"));
        assert!(!pending.is_current());
        pods.listed("500");
        assert!(pending.is_current());
        pending.wrote(&pods, Some("510"));
        assert!(!pending.is_current(), "the versions from before no longer count");
        pods.observe(Some("510"));
        assert!(pending.is_current());
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_never_comes_back_does_not_block_for_ever() {
        let (mut pending, pods) = (Pending::default(), Watermark::default());
        pending.wrote(&pods, Some("5"));
        tokio::time::advance(CATCH_UP_TIMEOUT).await;
        assert!(pending.is_current());
    }
}
