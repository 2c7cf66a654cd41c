//! Reads from the API server: watches with one backoff each, caches of pruned rows, live look-ups, and failed requests in
//! words. For controllers, and for programs that only read.

mod api_error;
mod cache;
mod consistency;
mod decode;
mod discovery;
mod dynamic_kind;
mod failure;
mod health;
mod live;
mod object;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;

pub use {
    api_error::{ApiError, Cause, Verb},
    cache::{Cache, Row},
    consistency::{SeenVersion, WriteTarget},
    decode::{Lenient, Pruned, PrunedObject},
    discovery::Discovery,
    dynamic_kind::{DynamicKind, DynamicRow},
    failure::{Failure, NextRetry},
    live::Live,
    object::ObjectId,
    stream::{Report, Watch, WatchHandle, Watches},
};
