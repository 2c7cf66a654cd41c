//! Carries out the next command, and reports on all commands.

use std::time::Duration;

use crate::{
    command_queue::CommandQueue,
    command_status::{self, is_progress},
    decide::{
        action::{Action, Cause},
        exchange, history,
    },
    observed::{Found, Observed},
    restarts, step,
};

/// Minimum time between writes of a command's status in which only the progress changes.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Carries out the next command: the effect, and the proof that it happened, in one write.
pub fn start(observed: &Observed, queue: &CommandQueue) -> Option<Action> {
    let (command, prepared) = (queue.next()?, observed.prepared.as_ref()?);
    if prepared.command != command.uid
        || observed.is_next_blocked()
        || observed.deployment.spec.paused
        || observed.attempt.holds(step::CARRY_OUT)
        || history::prove(observed).is_some()
    {
        return None;
    }
    match &prepared.target {
        None => {
            let child = observed.child.ours()?.clone();
            let token = restarts::token(&child, command, observed);
            Some(Action::Restart { child, command: command.clone(), token })
        }
        Some((desired, Found::Ours(child) | Found::Orphan(child))) => {
            Some(exchange::change(child, desired, observed, Cause::Rollback))
        }
        Some((desired, _)) => Some(exchange::create(desired, observed, Cause::Rollback)),
    }
}

/// Carries out the next command if it is a rollback to another child: only that leads away from one that breaks the contract.
pub fn leave(observed: &Observed, queue: &CommandQueue) -> Option<Action> {
    let (_, target) = observed.prepared.as_ref()?.target.as_ref()?;
    let present = observed.child.ours()?;
    let is_other = target.ours().is_none_or(|target| target.uid != present.uid);
    is_other.then(|| start(observed, queue)).flatten()
}

/// Writes the status of each command where it has changed.
pub fn tell(observed: &Observed, queue: &CommandQueue) -> Option<Action> {
    let is_held = |uid: &str| observed.held_up().is_none() && observed.attempt.holds_item(step::TELL, uid);
    let news: Vec<_> = queue
        .iter()
        .filter(|(command, _)| !is_held(&command.uid))
        .filter_map(|(command, standing)| {
            let status = command_status::news(command, standing, observed)?;
            let can_wait = is_progress(&command.status, &status) && progress_in(observed).is_some();
            (!can_wait).then(|| (command.clone(), status))
        })
        .collect();
    (!news.is_empty()).then_some(Action::Tell(news))
}

/// The time until commands need another pass, if nothing happens before.
pub fn due_in(observed: &Observed, queue: &CommandQueue) -> Option<Duration> {
    let deletions = queue.iter().filter_map(|(command, _)| command.deletion()?.due_in(observed.now));
    let open = queue.iter().filter(|(command, _)| command.deletion.is_none());
    let deadlines = open.filter_map(|(command, _)| command.left(observed.now));
    let has_news = |command, standing| command_status::news(command, standing, observed).is_some();
    let progress =
        progress_in(observed).filter(|_| queue.iter().any(|(command, standing)| has_news(command, standing)));
    deadlines.chain(deletions).chain(progress).chain(queue.stuck_in).filter(|left| !left.is_zero()).min()
}

/// The time until progress alone may be reported.
fn progress_in(observed: &Observed) -> Option<Duration> {
    PROGRESS_INTERVAL.checked_sub(observed.since_told?).filter(|left| !left.is_zero())
}
