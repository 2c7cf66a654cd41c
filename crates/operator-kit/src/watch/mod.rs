//! Reads: watches with one backoff each, caches of trimmed rows, and live look-ups.

mod cache;
pub(crate) mod consistency;
mod interner;
pub(crate) mod lenient;
pub mod live;
pub mod pod;
mod read_error;
mod served;
mod stream;
mod trimmed;
mod watched_kind;

pub use {
    cache::{Cache, Row},
    consistency::{WatchedResource, Watermark},
    interner::Interner,
    lenient::Unmanaged,
    read_error::{ReadCause, ReadError},
    served::{ServedKind, ServedKinds},
    stream::{Watch, WatchHandle, Watches},
    trimmed::{Trimmed, TrimmedObject, trimmed_metadata, trimmed_time},
    watched_kind::{Source, Watched, WatchedKind},
};
#[cfg(feature = "testing")]
pub(crate) use {
    lenient::Lenient,
    stream::{read_change, read_page},
};
pub(crate) use {lenient::readable, read_error::words, watched_kind::Intake};
