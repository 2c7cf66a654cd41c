//! When people are told by an Event: at once, and again before it expires. Pure.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use jiff::Timestamp;

use super::{Verdict, age};
use crate::observed::Observed;

/// How long the API server keeps Events, if nobody configured it otherwise.
const KEPT: Duration = Duration::from_secs(3600);
/// The same is told again after this long at the soonest.
const AGAIN: Duration = Duration::from_secs(30 * 60);
/// Up to this much later, another time for each command.
const AGAIN_SPREAD: Duration = Duration::from_secs(20 * 60);
/// What may have been told of an older command by an earlier process is told within this time of the start.
const START_SPREAD: Duration = Duration::from_secs(10 * 60);

/// In which time a verdict is to be told; `None` if it is not.
pub fn due(observed: &Observed, verdict: &Verdict) -> Option<Duration> {
    // That it would be bound is no trouble, and a failure is told by whoever it happened to.
    let is_noise = verdict.reason == "WouldBind" && age(observed) >= KEPT;
    if verdict.is_bound || is_noise || observed.attempt.failure().is_some() {
        return None;
    }
    let at = match observed.told {
        Some(told) if told.reason == verdict.reason => later(told.at, AGAIN + share(observed, AGAIN_SPREAD)),
        None if is_old(observed) => later(observed.started, share(observed, START_SPREAD)),
        _ => observed.now,
    };
    Some(Duration::try_from(at.duration_since(observed.now)).unwrap_or_default())
}

/// Whether an earlier process had all the time to tell it.
fn is_old(observed: &Observed) -> bool {
    let created = observed.command.metadata.creation_timestamp.as_ref();
    created.is_some_and(|created| later(created.0, KEPT) < observed.started)
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// A part of a time span, always the same for a command, so that those that began together do not go on together.
fn share(observed: &Observed, of: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    observed.command.metadata.uid.hash(&mut hasher);
    of * u32::from(hasher.finish().to_be_bytes()[0]) / 256
}
