//! Decides when a held object is checked again, and whether its status is written.

use std::time::Duration;

use jiff::Timestamp;
use operator_kit::report::Failure;

use super::action::{Action, Release};
use crate::{
    annotation::BackupStatus,
    backup::{Try, Verdict},
    observed::{Held, Observed},
    settings::ProtectedKind,
    status::{self, Outcome},
};

/// Time between checks of a running backup without events.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// Minimum duration of a state that is worth a write.
const TELL_DELAY: Duration = Duration::from_secs(3);

/// A backup is running.
pub(super) fn running(
    observed: &Observed,
    kind: &ProtectedKind,
    held: &Held,
    last: &Try,
    verdict: &Verdict,
) -> Action {
    let status = status::running(observed, held, last, verdict);
    let briefly = held.left(last.created, TELL_DELAY);
    let again = held.left(last.created, kind.deadline).min(LOOK_INTERVAL);
    if held.status.is_none() && !briefly.is_zero() {
        return Action::Hold { status, tell: false, again: briefly.min(again) };
    }
    hold(held, status, again)
}

/// A backup takes too long, and the object is held.
pub(super) fn overdue(observed: &Observed, kind: &ProtectedKind, held: &Held, last: &Try) -> Action {
    hold(held, status::overdue(observed, kind, held, last), LOOK_INTERVAL)
}

/// A backup failed or was given up, and the next attempt has to wait.
pub(super) fn failed(
    observed: &Observed,
    kind: &ProtectedKind,
    held: &Held,
    last: &Try,
    due: Timestamp,
) -> Action {
    let pause = Duration::try_from(due.duration_since(held.now)).unwrap_or_default();
    hold(held, status::failed(observed, kind, held, last, due), pause)
}

/// A backup cannot be created.
pub(super) fn blocked(observed: &Observed, held: &Held, attempt: u32, failure: &Failure) -> Action {
    hold(held, status::blocked(observed, held, attempt, failure), LOOK_INTERVAL)
}

/// The object is released.
pub(super) fn release(
    observed: &Observed,
    held: &Held,
    outcome: Outcome,
    last: Option<&Try>,
    why: &str,
) -> Action {
    Action::Release(Release { outcome, status: status::released(observed, held, outcome, last, why) })
}

fn hold(held: &Held, status: BackupStatus, again: Duration) -> Action {
    let status = status.continuing(held.status.as_ref());
    let tell = held.status.as_ref() != Some(&status) || held.tell_again == Some(Duration::ZERO);
    let again = held.tell_again.map_or(again, |tell_again| again.min(tell_again));
    Action::Hold { status, tell, again }
}
