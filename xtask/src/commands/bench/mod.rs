//! `cargo xtask bench`: Catena beside kube-controller-manager, on the same cluster, in the same run.

mod process;
mod requests;
mod subject;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, PostParams},
};
use local_cluster::{Interrupt, LocalCluster, Step, Wanted, client, seconds};

use crate::{cargo, charts, cluster::Cluster, workspace};
use process::Usage;
use requests::Requests;
use subject::Subject;

/// Connections that create the objects.
const CONNECTIONS: usize = 16;
/// Pause before each subject, so that it starts on a quiet cluster.
const REST: Duration = Duration::from_secs(5);
/// Time between readiness checks, whose answers are small, because they are counts.
const LOOK: Duration = Duration::from_millis(100);

/// The options of a benchmark.
#[derive(clap::Args)]
pub struct Options {
    /// Number of objects that are created at once
    #[arg(long, default_value_t = 300, value_name = "COUNT")]
    objects: usize,
    /// Number of replicas of each object
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    replicas: usize,
    /// Times that each subject is measured
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    runs: usize,
    /// Leave kube-controller-manager's Deployments out
    #[arg(long)]
    catena_only: bool,
    /// Give up after this many seconds
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    patience: u64,
}

/// Measures on a cluster of its own, which is always taken down.
pub async fn run(options: &Options) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let cluster = LocalCluster::named(&format!("bench-{}", std::process::id()))?;
    let result = Box::pin(interrupt.or(measure(&cluster, options, &interrupt))).await;
    cluster.take_down()?;
    result
}

async fn measure(cluster: &LocalCluster, options: &Options, interrupt: &Interrupt) -> Result<()> {
    cargo::run(&["build", "--release"], interrupt).await?;
    let bin_dir = workspace::release_binaries();
    let wanted = Wanted { nodes: 10, bin_dir: Some(bin_dir.clone()), default_bin_dir: bin_dir };
    cluster.bring_up(&wanted).await?;
    charts::install(&Cluster::local(cluster)?, &charts::all(), interrupt).await?;
    let client = client(&cluster.kubeconfig()).await?;
    let pods = options.objects * options.replicas;
    println!("\n{} objects with {} replicas each: {pods} pods", options.objects, options.replicas);
    for run in 0..options.runs {
        let mut subjects = [Subject::Catena, Subject::Native];
        // The first work of a cluster is the slowest, and earlier objects are still in the API server's memory.
        if run % 2 == 1 {
            subjects.reverse();
        }
        for subject in subjects {
            if subject == Subject::Native && options.catena_only {
                continue;
            }
            tokio::time::sleep(REST).await;
            one(cluster, &client, subject, options).await?;
        }
    }
    Ok(())
}

async fn one(cluster: &LocalCluster, client: &Client, subject: Subject, options: &Options) -> Result<()> {
    let namespace = subject.namespace(client).await?;
    let objects: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &subject.resource());
    let processes = subject.processes(cluster, client).await?;
    let before: Vec<Usage> = processes.iter().map(process::Process::usage).collect::<Result<_>>()?;
    let requests = Requests::from_now(cluster)?;
    let step = Step::start(subject.label());
    let started = Instant::now();
    stream::iter((0..options.objects).map(Ok))
        .try_for_each_concurrent(CONNECTIONS, async |number| {
            let object = subject.object(&format!("bench-{number}"), options.replicas);
            objects.create(&PostParams::default(), &object).await.map(drop)
        })
        .await
        .context("could not create the objects")?;
    let created = started.elapsed();
    subject
        .all_ready(&objects, options.objects, options.replicas, Duration::from_secs(options.patience))
        .await?;
    let ready = seconds(started.elapsed());
    step.done(format!("created in {}, all ready {ready} after the first was created", seconds(created)));
    // The work after readiness counts as well.
    tokio::time::sleep(Duration::from_secs(2)).await;
    for (process, before) in processes.iter().zip(&before) {
        let after = process.usage()?;
        let cpu = after.cpu.saturating_sub(before.cpu);
        println!(
            "  {:<30} {:.2} s CPU, {} MiB resident, {} MiB at most",
            process.name,
            cpu.as_secs_f64(),
            after.resident / 1024,
            after.resident_at_most / 1024
        );
    }
    print!("{}", requests.since(cluster, subject.users(), options.objects)?);
    clean_up(client, &objects, &namespace).await
}

async fn clean_up(client: &Client, objects: &Api<DynamicObject>, namespace: &str) -> Result<()> {
    let step = Step::start("cleaning up");
    let all: Vec<String> = objects
        .list_metadata(&ListParams::default())
        .await?
        .items
        .into_iter()
        .filter_map(|object| object.metadata.name)
        .collect();
    let deleted = stream::iter(all)
        .map(|name| async move { objects.delete(&name, &kube::api::DeleteParams::default()).await });
    deleted.buffer_unordered(CONNECTIONS).try_for_each(|_| async { Ok(()) }).await?;
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(client.clone(), namespace);
    loop {
        let left = pods.list_metadata(&ListParams::default().limit(1)).await?;
        if left.items.is_empty() {
            break;
        }
        tokio::time::sleep(LOOK * 5).await;
    }
    step.done("no pod is left");
    Ok(())
}
