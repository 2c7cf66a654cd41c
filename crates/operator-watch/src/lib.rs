//! Reads from the API server: watches with one backoff each, caches of trimmed rows, live look-ups, and failed requests in
//! words. For controllers, and for programs that only read.

mod api_error;
mod cache;
mod consistency;
mod decode;
mod failure;
mod health;
mod live;
mod object;
mod served;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
mod watched_kind;

pub use {
    api_error::{ApiError, Cause, Verb},
    cache::{Cache, Dependent, Row, SharedRows},
    consistency::{SeenVersion, WriteTarget},
    decode::{Pruned, PrunedObject, Unmanaged},
    failure::{Failure, NextRetry},
    health::Health,
    live::Live,
    object::ObjectId,
    served::{ServedKind, ServedKinds},
    stream::{Report, Watch, WatchHandle, Watches},
    watched_kind::{Source, Watched, WatchedKind},
};
