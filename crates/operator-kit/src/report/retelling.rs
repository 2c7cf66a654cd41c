//! Decides when an Event is repeated. Pure.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// Minimum time before an Event is repeated: the API server deletes Events after an hour.
const REPEAT_INTERVAL: Duration = Duration::from_secs(30 * 60);
/// Maximum additional delay, different for each object.
const REPEAT_SPREAD: Duration = Duration::from_secs(20 * 60);

/// The time after which an Event about an object is repeated while its reason persists.
#[must_use]
pub fn tell_again_after(uid: &str) -> Duration {
    REPEAT_INTERVAL + share(uid, REPEAT_SPREAD)
}

/// A part of a time span, constant for each object, so that objects which began together spread out.
fn share(uid: &str, of: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    of * u32::from(hasher.finish().to_be_bytes()[0]) / 256
}
