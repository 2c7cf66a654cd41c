//! The pods of a set by what becomes of them, and those that are missing.

use std::sync::Arc;

use catena_api::reason::DELETE_REFUSED;

use super::{Budget, proof};
use crate::{observed::Observed, pod::PodRow, step};

/// The pods of a set that count.
pub struct Pods<'o> {
    /// Those of the present revision; without a template, all of them, because nothing can replace them.
    pub updated: Vec<Arc<PodRow>>,
    /// Older ones.
    pub outdated: Vec<Arc<PodRow>>,
    /// Older ones whose deletion is refused. They hold up no replacement, within bounds, and count only as serving. A request
    /// that merely failed is repeated soon, and is worth no additional pod.
    pub stubborn: Vec<Arc<PodRow>>,
    /// The revision that served last, as long as the present one has not proven itself.
    pub former: Option<&'o str>,
    /// Number of pods of that revision that are missing below the budget.
    pub missing_former: usize,
}

impl<'o> Pods<'o> {
    /// Those of an observation.
    pub fn of(observed: &'o Observed, budget: &Budget) -> Self {
        let is_updated =
            |pod: &Arc<PodRow>| !observed.revision.as_ref().is_ok_and(|revision| **revision != *pod.revision);
        let is_stubborn = |pod: &Arc<PodRow>| {
            let failure = observed.backoffs.last_failure(step::DELETE, &pod.uid);
            failure.is_some_and(|failure| failure.reason == DELETE_REFUSED)
        };
        let (updated, old): (Vec<_>, Vec<_>) =
            observed.pods.iter().filter(|pod| pod.counts()).cloned().partition(is_updated);
        let (stubborn, outdated): (Vec<_>, Vec<_>) = old.into_iter().partition(is_stubborn);
        let former = proof::former(observed);
        let mut pods = Self { updated, outdated, stubborn, former, missing_former: 0 };
        if let Some(former) = former
            && observed.revision.is_ok()
        {
            let is_kept = |pod: &&Arc<PodRow>| *pod.revision == *former || observed.is_available(pod);
            let kept = pods.updated.iter().chain(&pods.outdated).filter(is_kept).count();
            let kept = kept + pods.stubborn.iter().filter(|pod| observed.is_available(pod)).count();
            pods.missing_former = budget.least().saturating_sub(kept);
        }
        pods
    }

    /// The number of those that count for the budget.
    pub fn total(&self) -> usize {
        self.updated.len() + self.outdated.len()
    }

    /// The number of old ones, also of those that are missing.
    pub fn old(&self) -> usize {
        self.outdated.len() + self.missing_former
    }
}
