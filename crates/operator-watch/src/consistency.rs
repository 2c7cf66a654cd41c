//! How far a watch is, for whoever waits until it shows a write.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use kube::{Resource, discovery::ApiResource};

/// The highest resourceVersion that a watch has delivered since its last list.
#[derive(Clone, Debug, Default)]
pub struct SeenVersion(Arc<AtomicU64>);

impl SeenVersion {
    /// That of objects that no watch shows: nothing waits for it.
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

    /// Records that the watch has reached a version.
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
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.version() != u64::MAX
    }

    /// The resourceVersion; 0 before the first list, and `u64::MAX` without a watch.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A kind that is written, and the watch that shows what was written.
#[derive(Clone, Debug)]
pub struct WriteTarget {
    /// The kind.
    pub resource: Arc<ApiResource>,
    /// How far its watch is.
    pub seen_version: SeenVersion,
}

impl WriteTarget {
    /// A kind whose watch is known.
    pub fn new(resource: impl Into<Arc<ApiResource>>, seen_version: &SeenVersion) -> Self {
        Self { resource: resource.into(), seen_version: seen_version.clone() }
    }

    /// The kind `K`, whose watch has delivered this.
    #[must_use]
    pub fn of<K: Resource<DynamicType = ()>>(seen_version: &SeenVersion) -> Self {
        Self::new(ApiResource::erase::<K>(&()), seen_version)
    }

    /// A kind that is not watched: nothing waits for its writes.
    pub fn unwatched(resource: impl Into<Arc<ApiResource>>) -> Self {
        Self { resource: resource.into(), seen_version: SeenVersion::unwatched() }
    }
}

fn number(resource_version: Option<&str>) -> Option<u64> {
    resource_version?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_has_ended_stays_ended() {
        let seen = SeenVersion::unwatched();
        seen.listed("5");
        assert!(!seen.is_watched());
    }
}
