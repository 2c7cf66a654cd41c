//! When what an Event says is told again. Pure.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// The same is told again after this long at the soonest: the API server forgets Events after an hour.
const REPEAT_INTERVAL: Duration = Duration::from_secs(30 * 60);
/// Up to this much later, another time for each object.
const REPEAT_SPREAD: Duration = Duration::from_secs(20 * 60);

/// After how long an Event about an object is told again, as long as what it says is so.
#[must_use]
pub fn tell_again_after(uid: &str) -> Duration {
    REPEAT_INTERVAL + share(uid, REPEAT_SPREAD)
}

/// A part of a time span, always the same for an object, so that objects which began together do not go on together.
#[must_use]
pub fn share(uid: &str, of: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    of * u32::from(hasher.finish().to_be_bytes()[0]) / 256
}
