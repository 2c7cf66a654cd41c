//! The line of commands before one target: one at a time, the oldest first, but those that supersede others before all.

use std::sync::Arc;

use jiff::Timestamp;

use crate::command::{Command, order};

/// Number of waiting commands that supersede others, the newest, that may run next: for each change of the target, each is judged.
const MAX_SUPERSEDING: usize = 8;

/// The commands that may run next, as far as the caches show: all commands of one target are given, the oldest first. Those that
/// supersede others go first, the newest before all. Where none of them can run, it is the turn of the oldest command: one that
/// waits has lost its precedence, but newer ones must not pass it, because it could not end them.
#[must_use]
pub fn candidates(line: &[Arc<Command>], now: Timestamp) -> Vec<&Arc<Command>> {
    let may_run = |command: &&Arc<Command>| {
        is_open(command) && command.row.broken_deadline.is_none() && !command.row.is_expired(now)
    };
    let open = || line.iter().filter(may_run);
    let waiting = || open().filter(|command| !command.row.has_started());
    let is_free = !open().any(|command| command.row.has_started());
    let oldest = waiting().next().filter(|_| is_free);
    let superseding = waiting().rev().filter(|command| command.row.run.supersedes);
    superseding.take(MAX_SUPERSEDING).chain(oldest).collect()
}

/// Whether a newer command has taken the place of an older one, if its report is right.
#[must_use]
pub fn takes_place(newer: &Command, older: &Command) -> bool {
    newer.row.run.supersedes && newer.row.has_started() && order(newer, older).is_gt()
}

/// The commands whose state may have changed: with their target or, `by` another command, with that alone. Two that concern others
/// never concern each other, so that they do not wake each other for ever.
pub fn concerned<'l>(
    line: &'l [Arc<Command>],
    by: Option<&'l Command>,
    now: Timestamp,
) -> impl Iterator<Item = &'l Arc<Command>> {
    let next = candidates(line, now);
    line.iter().filter(move |command| {
        let may_be_next = next.iter().any(|next| is_same(next, command));
        let is_affected = match by {
            None => command.row.has_started() || line.iter().any(|newer| takes_place(newer, command)),
            Some(other) => takes_place(other, command),
        };
        is_open(command) && (may_be_next || is_affected)
    })
}

/// Whether a command has neither ended nor been cancelled.
#[must_use]
pub fn is_open(command: &Command) -> bool {
    !command.row.has_ended() && command.metadata.deletion_timestamp.is_none()
}

/// Whether two watched commands are the same object.
#[must_use]
pub fn is_same(one: &Command, other: &Command) -> bool {
    one.metadata.uid == other.metadata.uid
}
