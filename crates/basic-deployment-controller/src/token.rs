//! The restart token of a `BasicDeployment`: the time of its last restart.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::observed::Observed;

/// Time by which a token may be later than now: the clock of the server, by which it is dated, may be ahead of this one.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);
/// Longest time until a token in the future is looked at again.
const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);

/// The restart token, if its time has not come yet. Its schema takes only times; some are later than any that this program
/// knows.
#[must_use]
pub fn in_future(observed: &Observed) -> Option<Timestamp> {
    let at = at(observed.deployment.spec.restarted_at.as_ref()?);
    is_early(at, observed.now).then_some(at)
}

/// Whether the token of a child is later than another one, and its time has come.
#[must_use]
pub fn is_later(token: &str, other: &str, now: Timestamp) -> bool {
    let token = at(token);
    token > at(other) && !is_early(token, now)
}

fn at(token: &str) -> Timestamp {
    token.parse().unwrap_or(Timestamp::MAX)
}

fn is_early(at: Timestamp, now: Timestamp) -> bool {
    at.duration_since(now) > MAX_CLOCK_SKEW
}

/// The time until a token in the future is looked at again.
#[must_use]
pub fn due_in(observed: &Observed) -> Option<Duration> {
    let left = in_future(observed)?.duration_since(observed.now);
    Some(Duration::try_from(left).unwrap_or_default().min(LONGEST_INTERVAL))
}
