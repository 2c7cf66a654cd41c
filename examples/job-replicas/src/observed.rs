//! The input of a decision, as plain data.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use operator_kit::run::Backoffs;

use crate::{
    job::{JobRow, Phase},
    kind::JobReplicas,
};

/// Time for which a Job that ended by itself is kept, so that one that always ends at once is not re-created in a tight
/// loop.
const REPLACE_DELAY: Duration = Duration::from_secs(10);

/// The input of a decision.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object.
    pub set: Arc<JobReplicas>,
    /// The steps that this pass may take.
    pub backoffs: Backoffs,
    /// The time of the observation.
    pub now: Timestamp,
    /// The revision of new Jobs.
    pub revision: String,
    /// The Jobs that the object controls.
    pub jobs: Vec<Arc<JobRow>>,
    /// Number of Jobs that may exist in addition during a replacement.
    pub surge: usize,
}

impl Observed {
    /// The number of desired Jobs.
    #[must_use]
    pub fn wanted(&self) -> usize {
        usize::try_from(self.set.spec.replicas).unwrap_or(0)
    }

    /// The time for which a Job that ended by itself is still kept.
    #[must_use]
    pub fn kept_for(&self, job: &JobRow) -> Duration {
        let age = Duration::try_from(self.now.duration_since(job.created)).unwrap_or_default();
        REPLACE_DELAY.saturating_sub(age)
    }

    /// Whether every Job is new and ready, and no other one is left.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_new = |job: &Arc<JobRow>| job.phase == Phase::Ready && job.revision == self.revision;
        self.jobs.len() == self.wanted() && self.jobs.iter().all(is_new)
    }
}
