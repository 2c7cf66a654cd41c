//! Reads: watches with one backoff each, caches of trimmed rows, and live look-ups.

mod api_error;
mod cache;
pub(crate) mod lenient;
pub mod live;
mod served;
mod stream;
mod trimmed;
mod watched_kind;
mod watermark;

pub use {
    api_error::{ApiError, Cause, Verb, unknown_fields},
    cache::{Cache, Row},
    lenient::Unmanaged,
    served::{ServedKind, ServedKinds},
    stream::{Watch, WatchHandle, Watches},
    trimmed::{Trimmed, TrimmedObject, trimmed_metadata, trimmed_time},
    watched_kind::{Source, Watched, WatchedKind},
    watermark::{WatchedResource, Watermark},
};
pub(crate) use {lenient::readable, watched_kind::Intake, watermark::version_number};
#[cfg(feature = "testing")]
pub(crate) use {
    lenient::{Lenient, Unreadable},
    stream::{read_change, read_objects},
};
