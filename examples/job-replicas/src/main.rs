//! Keeps `replicas` Jobs for each `JobReplicas`.

mod act;
mod controller;
mod observe;

use clap::Parser;
use job_replicas::{
    Settings,
    job::{JobRow, OF, WatchedJob},
    kind::JobReplicas,
};
use kube::Api;
use operator_kit::{
    run::{Arguments, Operator, Queue},
    watch::Watch,
};

use crate::{act::Executor, controller::JobReplicasController, observe::Observer};

/// Runs the replicas of each `JobReplicas` as Jobs.
#[derive(Parser)]
#[command(version, after_help = "Example: job-replicas --settings settings.yaml --log-format text")]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(env!("CARGO_PKG_NAME"), Cli::parse().arguments).await?;
    let queue = Queue::<JobReplicas>::default();
    let trigger = queue.trigger();
    let watch = Watch::new(Api::<WatchedJob>::all(operator.client()), "Job").labelled(OF);
    let jobs = operator.watches().cache(watch, JobRow::of, move |job: &JobRow| {
        trigger.notify(&job.namespace, &job.owner_name);
    });
    let executor = Executor::new(operator.writer(), jobs.watch().seen());
    let observer = Observer { settings: operator.settings(), jobs };
    operator.run(JobReplicasController { observer, executor }, queue).await
}
