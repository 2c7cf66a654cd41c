//! Observed → Action. Pure.

use std::time::Duration;

use operator_kit::{render::ExpressionError, run::Attempt};

use crate::{command::Expiry, observe::Observed};

/// The clock is looked at again after this long at the latest, so that one that was set right is noticed.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// One step for a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Delete it, exactly as it was seen.
    Delete,
    /// Tell people that it is kept, because of this label or annotation.
    TellKept(Box<str>),
    /// Tell people that it runs once more, and is kept from now on.
    TellCameBack,
    /// Report that its fields cannot be read.
    Refuse(Box<ExpressionError>),
    /// Come back later, when nothing happened before.
    Wait(Duration),
    /// Nothing is left to do.
    Settle,
}

/// The next step for a command.
pub fn decide(observed: &Observed) -> Action {
    let command = &observed.command;
    let is_going = observed.is_deleted || command.metadata.deletion_timestamp.is_some();
    if is_going || observed.attempt != Attempt::Allowed {
        return Action::Settle;
    }
    if observed.came_back {
        // Deleted again, it would come again, and run again without an end.
        return tell(observed, Action::TellCameBack);
    }
    match &command.row.expiry {
        Expiry::Open => Action::Settle,
        Expiry::Unreadable(error) => Action::Refuse(error.clone()),
        Expiry::At(time) => match Duration::try_from(time.duration_since(observed.now)) {
            Ok(left) if !left.is_zero() => Action::Wait(left.min(LOOK_AGAIN)),
            _ => expired(observed),
        },
    }
}

/// A command that is declared elsewhere would come back and run again: left in place, it is its own proof that it
/// ran.
fn expired(observed: &Observed) -> Action {
    match &observed.command.row.declared_by {
        None => Action::Delete,
        Some(mark) => tell(observed, Action::TellKept(mark.clone())),
    }
}

/// Tells it, and again before the Event about it expires.
fn tell(observed: &Observed, news: Action) -> Action {
    observed.told_for.filter(|left| !left.is_zero()).map_or(news, Action::Wait)
}

#[cfg(test)]
mod tests;
