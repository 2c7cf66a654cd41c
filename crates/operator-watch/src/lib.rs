//! Reads from the API server: watches with one backoff each, caches of trimmed rows, live look-ups, and failed requests in
//! words. For controllers, and for programs that only read.

mod api_error;
mod cache;
mod clip;
mod consistency;
mod failure;
mod health;
mod lenient;
mod live;
mod next_retry;
mod object;
mod reason;
mod report;
mod served;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
mod trimmed;
mod typed;
mod watched_kind;

pub use {
    api_error::{ApiError, Cause, Verb},
    cache::{Cache, Row, SharedRows},
    consistency::{WatchedResource, Watermark},
    failure::Failure,
    health::{Health, Need},
    lenient::Unmanaged,
    live::Live,
    next_retry::NextRetry,
    object::{Named, ObjectId},
    report::Report,
    served::{ServedKind, ServedKinds},
    stream::{Watch, WatchHandle, Watches},
    trimmed::{Trimmed, TrimmedObject},
    typed::Dependent,
    watched_kind::{Intake, Source, Watched, WatchedKind},
};
