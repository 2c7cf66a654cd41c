//! Decides when the status is written, and when the next pass is due.

use std::time::Duration;

use catena_api::deletion::Deletion;
use operator_kit::run::Attempt;

use crate::{
    blocking_pod::look_in,
    command_queue::CommandQueue,
    decide::{action::Action, commands},
    observed::Observed,
    stall::silence_in,
    status::{deadline_in, pace, status, told},
    step,
};

/// Minimum delay of the pass that looks for a blocking pod.
const MIN_LOOK_DELAY: Duration = Duration::from_secs(1);

/// Writes a changed status when it is due, or waits until something becomes due.
pub fn report(observed: &Observed, queue: &CommandQueue) -> Action {
    let look = look_in(observed).map(|left| left.max(MIN_LOOK_DELAY));
    write_or_wait(observed, queue, [deadline_in(observed), silence_in(observed), look])
}

/// Reports that the object is being deleted.
pub fn report_deletion(observed: &Observed, queue: &CommandQueue, deletion: Deletion<'_>) -> Action {
    if let Some(left) = deletion.due_in(observed.now) {
        return Action::Wait(left);
    }
    write_or_wait(observed, queue, [None, None, None])
}

fn write_or_wait(observed: &Observed, queue: &CommandQueue, others: [Option<Duration>; 3]) -> Action {
    let current = told(&observed.deployment);
    let new = status(observed);
    let is_refused = matches!(&observed.attempt, Attempt::Without(_)) && observed.attempt.holds(step::STATUS);
    let is_news = new != current && !is_refused;
    let due = observed.status_age.due_in(pace(&current, &new, observed)).filter(|_| is_news);
    if is_news && due.is_none() {
        return Action::WriteStatus(Box::new(new));
    }
    let next = others.into_iter().flatten().chain(due).chain(commands::due_in(observed, queue)).min();
    next.map_or(Action::Settle, Action::Wait)
}
