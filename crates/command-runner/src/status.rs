//! What is told of a command → its status. Pure.

use catena_api::{CommandStatus, command::SUCCEEDED};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_kit::report::Conditions;

use crate::{command::has_started, decide::judge::Verdict, observed::Observed};

/// The status of the command with this verdict.
#[must_use]
pub fn status(observed: &Observed, verdict: &Verdict) -> CommandStatus {
    let (command, now) = (&observed.command, observed.now);
    let (before, generation) = (command.row.report(observed.takes_status), command.metadata.generation);
    let (succeeded, reason, message) = (verdict.succeeded, &*verdict.reason, verdict.message.as_str());
    let conditions = Conditions::new(generation.unwrap_or_default(), now);
    let conditions = match succeeded {
        Some(succeeded) => conditions.with(SUCCEEDED, succeeded, reason, message),
        None => conditions.unknown(SUCCEEDED, reason, message),
    };
    // The default of a definition may say that it is reconciling. Only a condition replaces it in the same write: if it were
    // removed by another one, a crash between the two would leave an ended command in progress for ever.
    let conditions = conditions.with(Conditions::RECONCILING, succeeded.is_none(), reason, message).if_true(
        Conditions::STALLED,
        succeeded == Some(false),
        reason,
        message,
    );
    let started = |report: &CommandStatus| report.start_time.clone().filter(|_| has_started(report));
    let told = || started(&command.row.status).or_else(|| started(&command.row.annotated));
    // What only an annotation says, which its author can write, does not get into a status: that may supersede others.
    let has_run = observed.is_proven() || observed.takes_status != Some(true) && command.row.has_started();
    CommandStatus {
        observed_generation: generation,
        start_time: started(before).or_else(|| has_run.then(|| told().unwrap_or(Time(now)))),
        completion_time: succeeded.map(|_| Time(now)),
        progress: verdict.progress.as_ref().or(before.progress.as_ref()).cloned(),
        conditions: conditions.with_transition_times(&before.conditions),
    }
}
