//! Keeps `replicas` Jobs for each `JobReplicas`.

mod act;
mod controller;
mod observe;

use job_replicas::{
    Settings,
    job::{JobRow, OF, WatchedJob},
};
use operator_kit::run::{Identity, Operator, Queue};
use operator_watch::Watch;

use crate::{act::Executor, controller::JobReplicasController, observe::Observer};

const IDENTITY: Identity = Identity {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    about: "Runs the replicas of each `JobReplicas` as Jobs",
    prefix: "example",
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(IDENTITY, IDENTITY.parse()).await?;
    let queue = Queue::default();
    let requests = queue.clone();
    let watch = Watch::<WatchedJob>::all(&operator.client, &()).labelled(OF);
    let jobs = operator.watches.cache(watch, JobRow::of, move |job: &JobRow| {
        requests.notify(&job.namespace, &job.owner_name);
    });
    let executor = Executor::new(operator.writer.clone(), jobs.watch().seen_version());
    let observer = Observer { settings: operator.settings.clone(), jobs };
    operator.run(JobReplicasController { observer, executor }, queue).await
}
