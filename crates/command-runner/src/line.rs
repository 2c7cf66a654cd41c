//! The line of commands before one target: one at a time, the oldest first, but those that supersede others before all.

use std::sync::Arc;

use jiff::Timestamp;

use crate::command::{Command, order};

/// The command that may run next, as far as the caches show: all commands of one target are given, the oldest first.
#[must_use]
pub fn front(line: &[Arc<Command>], now: Timestamp) -> Option<&Arc<Command>> {
    let may_run = |command: &&Arc<Command>| {
        is_open(command) && command.row.deadline.as_ref().is_ok_and(|deadline| *deadline > now)
    };
    let open = || line.iter().filter(may_run);
    let newest_running = open().rfind(|command| command.row.has_started());
    let mut waiting = open().filter(|command| !command.row.has_started());
    let may_pass = |command: &Command| newest_running.is_none_or(|running| order(running, command).is_lt());
    let superseding = waiting.clone().find(|command| command.row.run.supersedes && may_pass(command));
    superseding.or_else(|| waiting.next().filter(|_| newest_running.is_none()))
}

/// The running command that has taken the place of an older one.
#[must_use]
pub fn superseding<'l>(line: &'l [Arc<Command>], older: &Command) -> Option<&'l Arc<Command>> {
    line.iter()
        .rfind(|newer| newer.row.run.supersedes && newer.row.has_started() && order(newer, older).is_gt())
}

/// The commands whose state may have changed with that of another one.
pub fn concerned(line: &[Arc<Command>], now: Timestamp) -> impl Iterator<Item = &Arc<Command>> {
    let first = front(line, now);
    line.iter().filter(move |command| {
        let is_first = first.is_some_and(|first| is_same(first, command));
        is_open(command) && (is_first || command.row.has_started() || superseding(line, command).is_some())
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
