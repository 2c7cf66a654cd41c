//! Decides when a verdict is reported by an Event: at once, again in other words, and again before it expires. Pure.

use std::time::Duration;

use jiff::Timestamp;
use operator_kit::{
    object::ObjectId,
    report::{share, tell_again_after},
};

use crate::{
    observed::{MIN_REWORDING_INTERVAL, Observed},
    verdict::Verdict,
};

/// The default lifetime of Events in the API server.
const EVENT_LIFETIME: Duration = Duration::from_secs(3600);
/// Time after the takeover within which verdicts on older commands are reported, because an earlier process may have
/// reported them already.
const START_SPREAD: Duration = Duration::from_secs(10 * 60);

/// The time until a verdict is reported; `None` if it is not.
pub fn due(observed: &Observed, verdict: &Verdict) -> Option<Duration> {
    // A command that would be bound is no problem, and failures are reported elsewhere.
    let is_noise = verdict.reason == "WouldBind" && observed.age() >= EVENT_LIFETIME;
    if verdict.is_bound || is_noise || observed.attempt.failure().is_some() {
        return None;
    }
    let uid = ObjectId::of(&*observed.command).uid;
    let at = match observed.told {
        Some(told) if told.reports(verdict) => later(told.at, tell_again_after(uid)),
        // The message of a mistake in an expression quotes values, which may change all the time: so the pauses grow.
        Some(told) if told.reason == verdict.reason => {
            later(told.at, told.changed_for().clamp(MIN_REWORDING_INTERVAL, tell_again_after(uid)))
        }
        None if is_old(observed) => later(observed.leads_since, share(uid, START_SPREAD)),
        _ => observed.now,
    };
    Some(Duration::try_from(at.duration_since(observed.now)).unwrap_or_default())
}

/// Whether an earlier process had enough time to report it.
fn is_old(observed: &Observed) -> bool {
    let created = observed.command.metadata.creation_timestamp.as_ref();
    created.is_some_and(|created| later(created.0, EVENT_LIFETIME) < observed.leads_since)
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
