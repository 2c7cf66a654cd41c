//! Observed → Action. Pure.

pub mod notice;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use operator_templates::ExpressionError;

use crate::observed::Observed;

/// Longest time between checks of the clock, so that a corrected clock is noticed.
const LOOK_INTERVAL: Duration = Duration::from_secs(3600);
/// How long after its TTL it is reported that a command is kept: as long as the API server keeps an Event.
/// Usually that is reported once; a restart of this process within this time may repeat it. Most kept commands
/// are meant to stay, so that a later Event would only be noise.
const NEWS: SignedDuration = SignedDuration::from_hours(1);

/// One step for a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Delete it, exactly as it was seen.
    Delete,
    /// Record on it that it is kept, before that is reported.
    Keep,
    /// Report by an Event why it is kept, unless that was reported a short time ago.
    Tell {
        /// Whether somebody has to act.
        is_warning: bool,
        /// One `PascalCase` word.
        reason: &'static str,
        /// The state, its reason and the remedy.
        note: String,
    },
    /// Report that its fields cannot be read.
    Refuse(Box<ExpressionError>),
    /// Reconcile again later, unless something happens before.
    Wait(Duration),
    /// Nothing is left to do.
    Settle,
}

/// The next step for a command.
#[must_use]
pub fn decide(observed: &Observed) -> Action {
    let command = &observed.command;
    let is_going = observed.is_deleted || command.metadata.deletion_timestamp.is_some();
    if is_going || !observed.backoffs.is_empty() {
        return Action::Settle;
    }
    if command.row.is_kept {
        return notice::created_again();
    }
    if observed.came_back && !command.row.is_restored {
        // If it were deleted again, it would come back and run again, without end. The memory of its deletion ends with
        // this process, so that the promise to keep it is on the command itself.
        return Action::Keep;
    }
    match &command.row.expires_at {
        Ok(None) => Action::Settle,
        Err(error) => Action::Refuse(error.clone()),
        Ok(Some(time)) => match Duration::try_from(time.duration_since(observed.now)) {
            Ok(left) if !left.is_zero() => Action::Wait(left.min(LOOK_INTERVAL)),
            _ => expired(observed, *time),
        },
    }
}

/// A command that is declared elsewhere would come back and run again: left in place, it is its own proof that it
/// ran.
fn expired(observed: &Observed, since: Timestamp) -> Action {
    let is_news = observed.now.duration_since(since) < NEWS;
    match &observed.command.row.declared_by {
        None => Action::Delete,
        Some(mark) if is_news => notice::kept(mark),
        Some(_) => Action::Settle,
    }
}

#[cfg(test)]
mod tests;
