//! Decides when the status is written, and when the next pass is due.

use std::time::Duration;

use operator_kit::{
    report::{Deletion, Pace, StatusAge},
    run::Attempt,
};

use crate::{
    blocking_pod::look_in,
    command_queue::CommandQueue,
    contest::{self, left_for},
    decide::{
        action::Action,
        child::{is_as_wanted, is_out_of_scale},
        commands,
    },
    observed::Observed,
    status::{deadline_in, pace, status, told},
    step,
    undone::Part,
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
        healing_in(observed),
        look_in(observed).map(|left| left.max(MIN_LOOK_DELAY)),
        contest::over_in(observed),
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

/// The time until somebody's change is undone, if its part was restored only just now.
fn healing_in(observed: &Observed) -> Option<Duration> {
    let child = observed.child.ours();
    let is_changed = |part: Part| match (part, child, &observed.desired) {
        (Part::Replicas, ..) => is_out_of_scale(observed),
        (_, None, _) | (_, _, Err(_)) => false,
        _ if observed.deployment.spec.paused => false,
        (Part::Rendering, Some(child), Ok(desired)) => !is_as_wanted(child, desired, observed),
        (Part::Additions, Some(child), Ok(desired)) => !contest::additions(child, desired).is_empty(),
    };
    let parts = [Part::Rendering, Part::Replicas, Part::Additions];
    // Nearly always, nothing is left, and then the child need not be compared.
    parts.into_iter().filter_map(|part| left_for(part, observed).filter(|_| is_changed(part))).min()
}
