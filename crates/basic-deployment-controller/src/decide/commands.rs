//! Carries out the next command, and reports on all commands.

use std::time::Duration;

use catena_api::keys;
use serde_json::json;

use crate::{
    command::Order,
    command_queue::CommandQueue,
    command_status::{self, is_progress},
    decide::action::Action,
    observed::Observed,
    restarts, rollback, step,
};

/// Minimum time between writes of a command's status in which only the progress changes.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Carries out the next command on the `BasicDeployment`: the effect, and the proof that it happened, in one write.
pub fn start(observed: &Observed, queue: &CommandQueue) -> Option<Action> {
    let command = queue.next()?;
    if observed.confirmed.as_ref() != Some(&command.uid) || observed.attempt.holds(step::CARRY_OUT) {
        return None;
    }
    let recent = observed.recent.with(command.recent());
    let mut patch = json!({"metadata": {"annotations": {keys::COMMANDS: recent.to_json()}}});
    match command.asks.as_ref().ok()?.order {
        Order::Restart => {
            if let Some(token) = restarts::token(command, observed).ok()? {
                patch["spec"]["restartedAt"] = token.into();
            }
        }
        Order::Rollback(to) => {
            let pin = rollback::pin(rollback::target(to, observed).ok()?, observed);
            patch["metadata"]["annotations"][keys::PINNED_REVISION] = pin.to_json().into();
        }
    }
    Some(Action::CarryOut { command: command.clone(), patch })
}

/// Removes a pin that holds no longer: if the rejected rendering came back, it would hold again.
pub fn unpin(observed: &Observed) -> Option<Action> {
    (observed.has_spent_pin() && !observed.attempt.holds(step::UNPIN)).then_some(Action::Unpin)
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
    deadlines.chain(deletions).chain(progress).filter(|left| !left.is_zero()).min()
}

/// The time until progress alone may be reported.
fn progress_in(observed: &Observed) -> Option<Duration> {
    PROGRESS_INTERVAL.checked_sub(observed.since_told?).filter(|left| !left.is_zero())
}
