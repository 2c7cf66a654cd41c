//! Observed → Action. Pure.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crate::{
    job::{self, JobRow, Phase},
    kind::JobReplicasStatus,
    observed::Observed,
    status::{status, told},
};

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create Jobs of these names.
    Create(Vec<String>),
    /// Delete these Jobs.
    Delete(Vec<Arc<JobRow>>),
    /// Write the status.
    WriteStatus(Box<JobReplicasStatus>),
    /// Reconcile again later.
    Wait(Duration),
    /// Nothing is left to do.
    Settle,
}

impl Action {
    /// The step of the action. A failure holds up only its own step.
    #[must_use]
    pub fn step(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Delete(_) => "delete",
            Self::WriteStatus(_) => "status",
            Self::Wait(_) | Self::Settle => "",
        }
    }
}

/// The next step.
#[must_use]
pub fn decide(observed: &Observed) -> Action {
    if observed.set.metadata.deletion_timestamp.is_some() {
        // The garbage collector deletes the Jobs.
        return Action::Settle;
    }
    delete(observed).or_else(|| create(observed)).unwrap_or_else(|| report(observed))
}

/// Ended Jobs, and those of another revision or above the desired number, as long as enough others serve.
fn delete(observed: &Observed) -> Option<Action> {
    if observed.backoffs.is_backing_off("delete") {
        return None;
    }
    let ended =
        observed.jobs.iter().filter(|job| job.phase == Phase::Ended && observed.kept_for(job).is_zero());
    let mut doomed: Vec<_> = ended.cloned().collect();
    let counting = observed.jobs.iter().filter(|job| job.counts());
    let (new, old): (Vec<_>, Vec<_>) = counting.cloned().partition(|job| job.revision == observed.revision);
    let serving = new.iter().chain(&old).filter(|job| job.phase == Phase::Ready).count();
    let mut spare = serving.saturating_sub(observed.wanted());
    let has_old = !old.is_empty();
    for job in old {
        if job.phase == Phase::Ready {
            if spare == 0 {
                continue;
            }
            spare -= 1;
        }
        doomed.push(job);
    }
    if !has_old {
        let mut new = new;
        new.sort_by_key(|job| (job.phase != Phase::Ready, job.created));
        doomed.extend(new.into_iter().skip(observed.wanted()));
    }
    (!doomed.is_empty()).then_some(Action::Delete(doomed))
}

/// Missing Jobs. During a replacement there may be a few more, and terminating ones still take their room.
fn create(observed: &Observed) -> Option<Action> {
    if observed.backoffs.is_backing_off("create") {
        return None;
    }
    let new = observed
        .jobs
        .iter()
        .filter(|job| job.phase != Phase::Terminating && job.revision == observed.revision);
    let missing = observed.wanted().saturating_sub(new.count());
    let room = (observed.wanted() + observed.surge).saturating_sub(observed.jobs.len());
    let taken: BTreeSet<&str> = observed.jobs.iter().map(|job| job.name.as_str()).collect();
    let names =
        (0..).map(|slot| job::name(&observed.set, slot)).filter(|name| !taken.contains(name.as_str()));
    let names: Vec<String> = names.take(missing.min(room)).collect();
    (!names.is_empty()).then_some(Action::Create(names))
}

fn report(observed: &Observed) -> Action {
    let new = status(observed);
    if new != told(&observed.set) {
        return Action::WriteStatus(Box::new(new));
    }
    let ended = observed.jobs.iter().filter(|job| job.phase == Phase::Ended);
    let next = ended.map(|job| observed.kept_for(job)).filter(|left| !left.is_zero()).min();
    next.map_or(Action::Settle, Action::Wait)
}

#[cfg(test)]
mod tests;
