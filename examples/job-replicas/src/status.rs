//! Observed → status. Pure.

use operator_kit::report::Conditions;

use crate::{
    job::{OF, Phase},
    kind::{BlockedBy, JobReplicas, JobReplicasStatus},
    observed::Observed,
};

/// The types of this controller's conditions.
pub const CONDITIONS: [&str; 2] = [Conditions::READY, Conditions::STALLED];

/// The last reported status, without conditions of other controllers.
#[must_use]
pub fn told(set: &JobReplicas) -> JobReplicasStatus {
    let mut told = set.status.clone().unwrap_or_default();
    told.conditions = Conditions::of_types(&told.conditions, &CONDITIONS);
    told
}

/// The status that reports an observation.
#[must_use]
pub fn status(observed: &Observed) -> JobReplicasStatus {
    let set = &observed.set;
    let generation = set.metadata.generation.unwrap_or_default();
    let count = |holds: &dyn Fn(&crate::job::JobRow) -> bool| {
        let found = observed.jobs.iter().filter(|job| holds(job)).count();
        i32::try_from(found).unwrap_or(i32::MAX)
    };
    let active = count(&|job| job.phase == Phase::Ready);
    let updated = count(&|job| job.counts() && job.revision == observed.revision);
    let failure = observed.backoffs.failure();
    let is_stalled = failure.is_some_and(|failure| failure.is_stalled);
    let is_ready = failure.is_none() && observed.is_complete();
    let (reason, message) = match failure {
        Some(failure) => (failure.reason, failure.message.clone()),
        None if is_ready => ("Complete", format!("{active} workers serve")),
        None => {
            ("Progressing", format!("{active} of {} workers serve, {updated} are new", observed.wanted()))
        }
    };
    let conditions = Conditions::new(generation, observed.now)
        .with(Conditions::READY, is_ready, reason, message.clone())
        .if_true(Conditions::STALLED, is_stalled, reason, message)
        .with_transition_times(&told(set).conditions);
    JobReplicasStatus {
        observed_generation: Some(generation),
        active,
        updated,
        selector: set.metadata.uid.as_ref().map(|uid| format!("{OF}={uid}")),
        blocked_by: blocked_by(observed),
        conditions,
    }
}

fn blocked_by(observed: &Observed) -> Option<BlockedBy> {
    let waiting = observed.jobs.iter().filter(|job| matches!(job.phase, Phase::Starting | Phase::Ended));
    waiting.min_by_key(|job| &job.name).map(|job| BlockedBy {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        name: job.name.clone(),
        reason: if job.phase == Phase::Ended { "WorkerEnded" } else { "WorkerNotReady" }.into(),
        message: String::new(),
    })
}
