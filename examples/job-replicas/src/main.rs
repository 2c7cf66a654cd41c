//! Keeps `replicas` Jobs for each `JobReplicas`.

mod act;
mod controller;
mod observe;

use job_replicas::{
    Settings,
    job::{JobRow, OF, WatchedJob},
};
use kube::Api;
use operator_kit::run::{Arguments, Operator, Queue};
use operator_watch::Watch;

use crate::{act::Executor, controller::JobReplicasController, observe::Observer};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let arguments = Arguments::parse(name, version, "Runs the replicas of each `JobReplicas` as Jobs");
    let operator = Operator::<Settings>::start(name, arguments).await?;
    let queue = Queue::default();
    let requests = queue.clone();
    let watch = Watch::new(Api::<WatchedJob>::all(operator.client()), "Job").labelled(OF);
    let jobs = operator.watches().cache(watch, JobRow::of, move |job: &JobRow| {
        requests.notify(&job.namespace, &job.owner_name);
    });
    let executor = Executor::new(operator.writer(), jobs.watch().seen());
    let observer = Observer { settings: operator.settings(), jobs };
    operator.run(JobReplicasController { observer, executor }, queue).await
}
