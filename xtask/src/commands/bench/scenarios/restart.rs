//! The controllers are killed, until a new object is ready.

use std::time::{Duration, Instant};

use anyhow::Result;
use kube::{api::PostParams, runtime::watcher};

use super::super::{
    figure::{Figure, TIME},
    process::Process,
    trial::Trial,
};

/// The new object.
const PROBE: &str = "probe";

/// Kills them. The time counts from the start of the last new process, because the pause before that is the local
/// cluster's.
pub async fn run(trial: &Trial<'_>) -> Result<Vec<Figure>> {
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
