//! The state of a command → its status. Pure.

use catena_api::{CommandStatus, command::SUCCEEDED, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_kit::report::Conditions;

use crate::{decide::judge::State, observed::Observed};

/// The status of the command in this state.
#[must_use]
pub fn status(observed: &Observed, state: &State) -> CommandStatus {
    let (command, now) = (&observed.command, observed.now);
    let (before, generation) = (&command.row.status, command.metadata.generation);
    let conditions = Conditions::new(generation.unwrap_or_default(), now);
    let (succeeded, reason, message, progress) = match state {
        State::Waiting(told) => (None, &*told.reason, told.message.as_str(), None),
        State::Due(_) => (None, reason::QUEUED, "it is about to be carried out", None),
        State::Running(run) => (None, reason::RUNNING, run.message.as_str(), run.progress.as_ref()),
        State::Succeeded(run) => (Some(true), "Complete", run.message.as_str(), run.progress.as_ref()),
        State::Failed(told) => (Some(false), &*told.reason, told.message.as_str(), None),
    };
    let conditions = match succeeded {
        Some(succeeded) => conditions.with(SUCCEEDED, succeeded, reason, message),
        None => conditions.unknown(SUCCEEDED, reason, message),
    };
    // The default of a definition may say that it is reconciling. Only a condition replaces it in the same write: if it were
    // removed by another one, a crash between the two would leave an ended command in progress for ever.
    let conditions = conditions
        .with(Conditions::RECONCILING, succeeded.is_none(), reason, message)
        .while_true(Conditions::STALLED, succeeded == Some(false), reason, message);
    let started = before.start_time.clone().filter(|_| command.row.has_started());
    CommandStatus {
        observed_generation: generation,
        start_time: started.or_else(|| observed.has_run().then_some(Time(now))),
        completion_time: succeeded.map(|_| Time(now)),
        progress: progress.or(before.progress.as_ref()).cloned(),
        conditions: conditions.since(&before.conditions),
    }
}

/// Whether only numbers of a running command differ.
#[must_use]
pub fn is_progress(before: &CommandStatus, after: &CommandStatus) -> bool {
    before.start_time.is_some() && after.completion_time.is_none() && before.conditions == after.conditions
}
