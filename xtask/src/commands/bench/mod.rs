//! `cargo xtask bench`: Catena beside kube-controller-manager, on the same cluster, in the same run.

mod figure;
mod machine;
mod meter;
mod pod;
mod process;
mod report;
mod requests;
mod scenarios;
mod subject;
mod trial;

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use local_cluster::{Interrupt, LocalCluster, Wanted, files};
use serde_json::json;

use crate::{
    cargo,
    charts::{self, Chart},
    cluster::{Cluster, temporary},
    post_mortem::ended,
    workspace::{self, Profile},
};
use meter::Meter;
use report::Sample;
use scenarios::Scenario;
use subject::Subject;
use trial::{Setting, Trial};

/// The options of a benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Scenarios to measure; several, with commas between them, share one set of objects
    #[arg(long, value_enum, value_delimiter = ',', default_value = "create", value_name = "SCENARIO")]
    scenario: Vec<Scenario>,
    /// Number of objects; several numbers, such as 300,1000, are measured one after the other
    #[arg(long, value_delimiter = ',', default_value = "300", value_name = "COUNT")]
    objects: Vec<NonZeroUsize>,
    /// Number of replicas of each object
    #[arg(long, default_value = "3", value_name = "COUNT")]
    replicas: NonZeroUsize,
    /// Size up to which the environment of each pod is padded; 0 leaves the pods as small as the default template makes them
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    pod_bytes: usize,
    /// Times that each subject is measured
    #[arg(long, default_value = "1", value_name = "COUNT")]
    runs: NonZeroUsize,
    /// Leave kube-controller-manager's Deployments out
    #[arg(long)]
    catena_only: bool,
    /// Pause before each measurement, in seconds, so that it starts on a quiet cluster
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    rest: u64,
    /// Time limit of a scenario, in seconds
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    timeout: u64,
    /// Write all figures of all runs to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Options {
    fn subjects(&self) -> Vec<Subject> {
        if self.catena_only { vec![Subject::Catena] } else { vec![Subject::Catena, Subject::Native] }
    }
}

/// Measures on a cluster of its own, which is always taken down.
pub async fn run(options: &Options) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let cluster = temporary("bench")?;
    let measured = async {
        set_up(&cluster, options, &interrupt).await?;
        measure(&cluster, options, &interrupt).await
    };
    let result = Box::pin(measured).await;
    ended(result, cluster.take_down().map(drop))
}

/// Measures a few objects on a cluster that is up and has the charts, to show that it works.
pub async fn rehearse(cluster: &LocalCluster, interrupt: &Interrupt) -> Result<()> {
    let few = |count| NonZeroUsize::MIN.saturating_add(count);
    let options = Options {
        scenario: vec![Scenario::Create, Scenario::Scale, Scenario::Restart],
        objects: vec![few(2)],
        replicas: few(1),
        pod_bytes: 0,
        runs: NonZeroUsize::MIN,
        catena_only: false,
        rest: 0,
        timeout: 60,
        json: None,
    };
    measure(cluster, &options, interrupt).await
}

async fn set_up(cluster: &LocalCluster, options: &Options, interrupt: &Interrupt) -> Result<()> {
    cargo::run(&["build", "--release"], interrupt).await?;
    let bin_dir = workspace::binaries(Profile::Release)?;
    let wanted = Wanted { nodes: 10, bin_dir: Some(bin_dir.clone()), default_bin_dir: bin_dir };
    interrupt.or(cluster.bring_up(&wanted)).await?;
    let on = Cluster::local(cluster)?;
    charts::install(&on, &charts_with_pods(&on.access.logs, options.pod_bytes)?, interrupt).await
}

/// All charts; the additional values of the one that creates pods are written to a file in `directory`.
fn charts_with_pods(directory: &Path, pod_bytes: usize) -> Result<Vec<Chart>> {
    let mut charts = charts::all();
    if pod_bytes > 0 {
        let path = directory.join("bench-values.yaml");
        // JSON is YAML.
        let values = json!({"templates": {"default": pod::jinja(pod_bytes)}}).to_string();
        files::write(&path, values)?;
        let with_pods = charts.iter_mut().find(|chart| chart.name == "basic-replicaset-controller");
        with_pods.context("there is no basic-replicaset-controller")?.values.push(path);
    }
    Ok(charts)
}

/// Measures, and reports also what was measured before a failure.
async fn measure(cluster: &LocalCluster, options: &Options, interrupt: &Interrupt) -> Result<()> {
    let mut samples = Vec::new();
    let result = Box::pin(interrupt.or(take_turns(cluster, options, &mut samples))).await;
    if samples.is_empty() {
        return result;
    }
    ended(result, report::write(&samples, options))
}

async fn take_turns(cluster: &LocalCluster, options: &Options, samples: &mut Vec<Sample>) -> Result<()> {
    let meter = Meter::new(cluster, Duration::from_secs(options.rest)).await?;
    let scenarios = Scenario::in_order(&options.scenario);
    for objects in &options.objects {
        for run in 1..=options.runs.get() {
            let setting = Setting {
                meter: &meter,
                objects: objects.get(),
                replicas: options.replicas.get(),
                pod_bytes: options.pod_bytes,
                timeout: Duration::from_secs(options.timeout),
                run,
            };
            println!("\n{objects} objects, run {run} of {}", options.runs);
            let mut subjects = options.subjects();
            // The first work of a cluster is the slowest, and earlier objects are still in the API server's memory.
            if run % 2 == 0 {
                subjects.reverse();
            }
            for subject in subjects {
                chain(&setting, subject, &scenarios, samples).await?;
            }
        }
    }
    Ok(())
}

/// Takes one set of objects through the scenarios; creating and deleting them is necessary in any case.
async fn chain(
    setting: &Setting<'_>,
    subject: Subject,
    scenarios: &[Scenario],
    samples: &mut Vec<Sample>,
) -> Result<()> {
    let mut trial = Trial::begin(setting, subject).await?;
    if !scenarios.contains(&Scenario::Create) {
        Scenario::Create.run(&mut trial).await?;
    }
    for scenario in scenarios {
        samples.push(scenario.measure(&mut trial).await?);
    }
    trial.delete().await
}
