//! Cache → Observed. The only reader.

use std::sync::Arc;

use jiff::Timestamp;
use job_replicas::{
    Settings,
    job::{JobRow, revision},
    kind::JobReplicas,
    observed::Observed,
};
use operator_kit::run::{Backoffs, SettingsHandle};
use operator_watch::{Cache, Failure, ObjectId};

/// Reads the state of an object.
pub struct Observer {
    /// The settings in force.
    pub settings: SettingsHandle<Settings>,
    /// All Jobs with our label.
    pub jobs: Arc<Cache<JobRow>>,
}

impl Observer {
    /// Reads the state of an object.
    pub fn observe(&self, set: Arc<JobReplicas>, backoffs: Backoffs) -> Result<Observed, Failure> {
        // Jobs that are missing in an incomplete cache would be created again.
        if let Some(problem) = self.jobs.watch().problem() {
            return Err(Failure::transient(
                "JobsNotObserved",
                format!("the Jobs cannot be observed: {problem}"),
            ));
        }
        let ObjectId { namespace, uid, .. } = ObjectId::of(&*set);
        Ok(Observed {
            jobs: self.jobs.by_index(namespace, uid),
            revision: revision(&set),
            surge: self.settings.current().surge,
            now: Timestamp::now(),
            backoffs,
            set,
        })
    }
}
