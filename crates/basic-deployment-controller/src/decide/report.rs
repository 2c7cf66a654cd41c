//! Decides when the status is written, and when the next pass is due.

use std::time::Duration;

use operator_kit::{
    report::{Deletion, Pace, StatusAge},
    run::Attempt,
};

use crate::{
    blocking_pod::look_in,
    command_queue::CommandQueue,
    decide::{action::Action, commands},
    observed::Observed,
    status::{deadline_in, pace, status, told},
    step,
};

/// Maximum delay of the first status while nothing blocks: a large child takes longer to become ready than the kit's
/// own delay, and each status with mere numbers costs a write.
const FIRST_STATUS_DELAY: Duration = Duration::from_secs(20);

/// Minimum delay of the pass that looks for a blocking pod.
const MIN_LOOK_DELAY: Duration = Duration::from_secs(1);

/// Writes a changed status when it is due, or waits until something becomes due.
pub fn report(observed: &Observed, queue: &CommandQueue) -> Action {
    let current = told(&observed.deployment);
    let new = status(observed);
    let is_refused = matches!(&observed.attempt, Attempt::Without(_)) && observed.attempt.holds(step::STATUS);
    let is_news = new != current && !is_refused;
    let due = match (observed.status_age, pace(&current, &new, observed)) {
        (StatusAge::Unwritten(age), Pace::Settled | Pace::Counting) => {
            FIRST_STATUS_DELAY.checked_sub(age).filter(|left| !left.is_zero())
        }
        (age, pace) => age.due_in(pace),
    };
    if is_news && due.is_none() {
        return Action::WriteStatus(Box::new(new));
    }
    [
        due.filter(|_| is_news),
        deadline_in(observed),
        look_in(observed).map(|left| left.max(MIN_LOOK_DELAY)),
        commands::due_in(observed, queue),
    ]
    .into_iter()
    .flatten()
    .min()
    .map_or(Action::Settle, Action::Wait)
}

/// Reports that the object is being deleted.
pub fn report_deletion(observed: &Observed, queue: &CommandQueue, deletion: Deletion<'_>) -> Action {
    if let Some(left) = deletion.due_in(observed.now) {
        return Action::Wait(left);
    }
    let current = told(&observed.deployment);
    let new = status(observed);
    let is_refused = matches!(&observed.attempt, Attempt::Without(_)) && observed.attempt.holds(step::STATUS);
    let is_news = new != current && !is_refused;
    let due = observed.status_age.due_in(pace(&current, &new, observed)).filter(|_| is_news);
    if is_news && due.is_none() {
        return Action::WriteStatus(Box::new(new));
    }
    let due = due.into_iter().chain(commands::due_in(observed, queue)).min();
    due.map_or(Action::Settle, Action::Wait)
}
