//! When people are told by an Event: at once, and again before it expires. Pure.

use std::time::Duration;

use jiff::Timestamp;
use operator_kit::{
    object::ObjectId,
    report::{share, tell_again_after},
};

use crate::{observed::Observed, verdict::Verdict};

/// How long the API server keeps Events, if nobody configured it otherwise.
const EVENT_LIFETIME: Duration = Duration::from_secs(3600);
/// What may have been told of an older command by an earlier process is told within this time of the start.
const START_SPREAD: Duration = Duration::from_secs(10 * 60);

/// In which time a verdict is to be told; `None` if it is not.
pub fn due(observed: &Observed, verdict: &Verdict) -> Option<Duration> {
    // That it would be bound is no trouble, and a failure is told by whoever it happened to.
    let is_noise = verdict.reason == "WouldBind" && observed.age() >= EVENT_LIFETIME;
    if verdict.is_bound || is_noise || observed.attempt.failure().is_some() {
        return None;
    }
    let uid = ObjectId::of(&*observed.command).uid;
    let at = match observed.told {
        Some(told) if told.reason == verdict.reason => later(told.at, tell_again_after(uid)),
        None if is_old(observed) => later(observed.started, share(uid, START_SPREAD)),
        _ => observed.now,
    };
    Some(Duration::try_from(at.duration_since(observed.now)).unwrap_or_default())
}

/// Whether an earlier process had all the time to tell it.
fn is_old(observed: &Observed) -> bool {
    let created = observed.command.metadata.creation_timestamp.as_ref();
    created.is_some_and(|created| later(created.0, EVENT_LIFETIME) < observed.started)
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
