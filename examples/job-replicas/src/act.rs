//! Action → writes. The only writer.

use job_replicas::{decide::Action, job, kind::JobReplicas, status::CONDITIONS};
use k8s_openapi::api::batch::v1::Job;
use kube::api::DeleteParams;
use operator_kit::{
    run::Requeue,
    write::{Batch, Writer},
};
use operator_watch::{Failure, ObjectId, Row, SeenVersion, WriteTarget};

/// Takes steps.
pub struct Executor {
    writer: Writer,
    jobs: WriteTarget,
}

impl Executor {
    /// An executor whose writes to Jobs appear in `seen`.
    pub fn new(writer: Writer, seen: &SeenVersion) -> Self {
        Self { writer, jobs: WriteTarget::of::<Job>(seen) }
    }

    /// Takes a step.
    pub async fn act(&self, set: &JobReplicas, action: Action) -> Result<Requeue, Failure> {
        let writer = self.writer.for_object(ObjectId::of(set));
        match action {
            Action::Create(names) => {
                let create = async |name: String| {
                    let manifest = job::manifest(set, &name);
                    writer.create(&self.jobs, &manifest).await
                };
                Batch::run(names, create, |_| false).await.all()?;
            }
            Action::Delete(jobs) => {
                // The Job stays until its worker is gone, so that readiness can wait for that.
                let delete = async |job: std::sync::Arc<job::JobRow>| {
                    writer.delete(&self.jobs, job.id(), DeleteParams::foreground()).await
                };
                Batch::run(jobs, delete, |_| false).await.all()?;
            }
            Action::WriteStatus(status) => self.writer.write_status(set, &status, &CONDITIONS).await?,
            Action::Wait(time) => return Ok(Requeue::After(time)),
            Action::Settle => return Ok(Requeue::OnChange),
        }
        Ok(Requeue::Written)
    }
}
