//! What is told of a command → its status. Pure.

use catena_api::{CommandStatus, command::SUCCEEDED};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_kit::report::Conditions;
use operator_watch::Failure;

use crate::{command::has_started, decide::judge::Verdict, observed::Observed};

/// Maximum length of a text in an annotation, in bytes: it is there three times, and may be six times as long as JSON.
const MAX_ANNOTATED: usize = 1024;

/// The status of the command with this verdict.
#[must_use]
pub fn status(observed: &Observed, verdict: &Verdict) -> CommandStatus {
    let (command, now) = (&observed.command, observed.now);
    let (before, generation) = (command.row.report(observed.takes_status), command.metadata.generation);
    let longest = if observed.takes_status == Some(true) { usize::MAX } else { MAX_ANNOTATED };
    let (succeeded, reason) = (verdict.succeeded, &*verdict.reason);
    let message = &*Failure::clip(&verdict.message, longest);
    let progress = verdict.progress.as_ref().map(|progress| Failure::clip(progress, longest));
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
        progress: progress.or_else(|| before.progress.clone()),
        conditions: conditions.with_transition_times(&before.conditions),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        command::annotation,
        fixtures::{command, kind, observed, shop},
    };

    #[test]
    fn a_report_fits_into_an_annotation_whatever_its_texts_are() {
        let one = command(&kind("restarts", &json!({})), "one", 10, &json!({}));
        let seen = Observed { takes_status: Some(false), ..observed(&one, &[&one], shop(&[], &json!({}))) };
        let text = "\u{1}".repeat(32_768);
        let verdict = Verdict {
            succeeded: Some(false),
            progress: Some(text.clone()),
            ..Verdict::waits("TargetTerminating", text)
        };
        assert!(annotation("uid", &status(&seen, &verdict)).len() < 256 << 10);
    }
}
