//! Reads: watches with one backoff each, caches of trimmed rows, and live look-ups.

mod api_error;
mod cache;
pub(crate) mod consistency;
pub(crate) mod lenient;
pub mod live;
mod served;
mod stream;
mod trimmed;
mod watched_kind;

pub use {
    api_error::{ApiError, Cause, Verb, unknown_fields},
    cache::{Cache, Row},
    consistency::{WatchedResource, Watermark},
    lenient::Unmanaged,
    served::{ServedKind, ServedKinds},
    stream::{Watch, WatchHandle, Watches},
    trimmed::{Trimmed, TrimmedObject, trimmed_metadata, trimmed_time},
    watched_kind::{Source, Watched, WatchedKind},
};
pub(crate) use {cache::SharedRows, watched_kind::Intake};
#[cfg(feature = "testing")]
pub(crate) use {
    lenient::{Lenient, Unreadable},
    stream::{Change, read_page},
};
