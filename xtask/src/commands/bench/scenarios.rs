//! The scenarios: what the subjects are measured at.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PostParams},
    discovery::ApiResource,
    runtime::watcher,
};
use local_cluster::Step;
use serde::Serialize;
use serde_json::json;

use super::{
    figure::{Figure, TIME, Unit},
    pod::NEXT_IMAGE,
    process::Process,
    report::Sample,
    trial::{Trial, each},
};

/// The replicas that each object gets when it is scaled.
const MORE: usize = 2;
/// The object that is created after the controllers were killed.
const PROBE: &str = "probe";

/// The scenarios, in the order in which one set of objects goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// The objects are created, until all are ready
    Create,
    /// Each object gets two replicas more, until all are ready
    Scale,
    /// Each object gets another image, until all pods are replaced
    Roll,
    /// The controllers are killed, until a new object is ready
    Restart,
}

impl Scenario {
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The chosen ones, once each and in their order.
    pub fn in_order(chosen: &[Self]) -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|scenario| chosen.contains(scenario)).collect()
    }

    /// Does the work; its first figure is the time that it took.
    pub async fn run(self, trial: &mut Trial<'_>) -> Result<Vec<Figure>> {
        match self {
            Self::Create => create(trial).await,
            Self::Scale => {
                trial.replicas += MORE;
                trial.change(&Patch::Merge(json!({"spec": {"replicas": trial.replicas}}))).await
            }
            Self::Roll => trial.change(&trial.subject.roll(NEXT_IMAGE)).await,
            Self::Restart => restart(trial).await,
        }
    }

    /// Measures the work.
    pub async fn measure(self, trial: &mut Trial<'_>) -> Result<Sample> {
        let (setting, subject) = (trial.setting, trial.subject);
        let step = Step::start(format!("{}: {}", subject.label(), self.name()));
        let work = async || self.run(trial).await;
        let (figures, counts) = Box::pin(setting.meter.measure(subject, setting.objects, work))
            .await
            .with_context(|| format!("{} with {}", self.name(), subject.label()))?;
        let shown: Vec<String> = figures.iter().map(ToString::to_string).collect();
        step.done("");
        println!("  {}\n{}", shown.join("; "), counts.lines(setting.objects));
        Ok(Sample {
            scenario: self,
            subject,
            objects: setting.objects,
            replicas: trial.replicas,
            run: setting.run,
            figures,
            requests: counts.by_kind,
        })
    }
}

async fn create(trial: &Trial<'_>) -> Result<Vec<Figure>> {
    let started = Instant::now();
    let (replicas, pod_bytes) = (trial.setting.replicas, trial.setting.pod_bytes);
    each(trial.names(), async |name| {
        let object = trial.subject.object(&name, replicas, pod_bytes);
        trial.objects.create(&PostParams::default(), &object).await.map(drop)
    })
    .await
    .context("could not create the objects")?;
    let created = started.elapsed();
    trial.until_ready().await?;
    let ready = started.elapsed();
    Ok(vec![
        Figure::seconds(TIME, ready),
        Figure::seconds("created after", created),
        Figure::new("size of a pod", Unit::Bytes, size_of_a_pod(trial).await?),
    ])
}

/// The size of any pod, as JSON.
async fn size_of_a_pod(trial: &Trial<'_>) -> Result<f64> {
    let resource = ApiResource::erase::<Pod>(&());
    let client = trial.setting.meter.client.clone();
    let pods: Api<DynamicObject> = Api::namespaced_with(client, &trial.namespace, &resource);
    let pods = pods.list(&ListParams::default().limit(1)).await?;
    let pod = serde_json::to_vec(pods.items.first().context("there is no pod")?)?;
    Ok(f64::from(u32::try_from(pod.len())?))
}

/// Kills the controllers. The time counts from the start of the last new process, because the pause before that is the local
/// cluster's.
async fn restart(trial: &Trial<'_>) -> Result<Vec<Figure>> {
    let names = trial.subject.controllers();
    let old = trial.setting.meter.processes(names).await?;
    let killed = Instant::now();
    for process in &old {
        process.kill()?;
    }
    let probe = trial.subject.object(PROBE, 1, trial.setting.pod_bytes);
    trial.objects.create(&PostParams::default(), &probe).await?;
    let config = watcher::Config::default().fields(&format!("metadata.name={PROBE}"));
    trial.until(config, 1, |object| trial.subject.is_ready(object, 1)).await?;
    let ready = Instant::now();
    let new = replaced(trial, names, &old).await?;
    let ages = new.iter().map(Process::age).collect::<Result<Vec<Duration>>>()?;
    let youngest = ages.into_iter().min().unwrap_or_default();
    let acted = youngest.saturating_sub(ready.elapsed());
    Ok(vec![
        Figure::seconds(TIME, acted),
        Figure::seconds("started again after", ready.duration_since(killed).saturating_sub(acted)),
    ])
}

/// Waits until other processes are known for all of them.
async fn replaced(trial: &Trial<'_>, names: &[&str], old: &[Process]) -> Result<Vec<Process>> {
    let meter = trial.setting.meter;
    let are_new = async || {
        // While one is down, it has no process.
        let now = meter.processes(names).await.unwrap_or_default();
        Ok(now.len() == old.len() && !now.iter().any(|process| old.contains(process)))
    };
    trial.until_true("other processes run", are_new).await?;
    meter.processes(names).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_keeps_its_place() {
        let twice = [Scenario::Roll, Scenario::Create, Scenario::Roll];
        assert_eq!(Scenario::in_order(&twice), [Scenario::Create, Scenario::Roll]);
    }
}
