//! Reads: watches with one backoff each, caches of trimmed rows, and live look-ups.

mod api_error;
mod cache;
pub(crate) mod consistency;
mod interner;
pub(crate) mod lenient;
pub mod live;
pub mod pod;
mod served;
mod stream;
mod trimmed;
mod watched_kind;

pub use {
    api_error::{ApiError, Cause, Verb, unknown_fields},
    cache::{Cache, Row},
    consistency::{WatchedResource, Watermark},
    interner::Interner,
    lenient::Unmanaged,
    served::{ServedKind, ServedKinds},
    stream::{Notices, Watch, Watches},
    trimmed::{Trimmed, TrimmedObject, trimmed_metadata, trimmed_time},
    watched_kind::{Source, Watched, WatchedKind},
};
#[cfg(feature = "testing")]
pub(crate) use {
    lenient::Lenient,
    stream::{read_change, read_page},
};
pub(crate) use {
    lenient::readable,
    served::follow as follow_served,
    stream::{Follower, Task, Unread},
    watched_kind::Intake,
};
