use std::sync::Arc;

use kube::discovery::ApiResource;

use crate::watch::Watermark;

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
