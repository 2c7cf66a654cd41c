//! Decides when the status is written, and when the next pass is due.

use std::time::Duration;

use catena_api::deletion::Deletion;

use crate::{
    blocking_pod::look_in,
    decide::action::Action,
    observed::Observed,
    stall::{deadline_in, silence_in},
    status::{minimum_age, status, told},
    step, token,
};

/// Minimum delay of the pass that looks for a blocking pod.
const MIN_LOOK_DELAY: Duration = Duration::from_secs(1);

/// Writes a changed status when it is due, or waits until something becomes due.
pub fn report(observed: &Observed) -> Action {
    let look = look_in(observed).map(|left| left.max(MIN_LOOK_DELAY));
    let times = [deadline_in(observed), silence_in(observed), look, token::due_in(observed)];
    write_or_wait(observed, times)
}

/// Reports that the object is being deleted.
pub fn report_deletion(observed: &Observed, deletion: Deletion<'_>) -> Action {
    if let Some(left) = deletion.due_in(observed.now) {
        return Action::Wait(left);
    }
    write_or_wait(observed, [None; 4])
}

fn write_or_wait(observed: &Observed, others: [Option<Duration>; 4]) -> Action {
    let current = told(&observed.deployment);
    let new = status(observed);
    let is_refused =
        observed.backoffs.everything().is_none() && observed.backoffs.is_backing_off(step::STATUS);
    let is_news = new != current && !is_refused;
    let due = observed.status_age.due_in(minimum_age(&current, &new, observed)).filter(|_| is_news);
    if is_news && due.is_none() {
        return Action::WriteStatus(Box::new(new));
    }
    let next = others.into_iter().flatten().chain(due).min();
    next.map_or(Action::Settle, Action::Wait)
}
