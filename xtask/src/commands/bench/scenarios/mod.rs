//! The work of the scenarios.

mod create;
mod restart;

use anyhow::{Context, Result};
use kube::api::Patch;
use local_cluster::Step;
use serde_json::json;

use super::{figure::Figure, pod::NEXT_IMAGE, sample::Sample, scenario::Scenario, trial::Trial};

/// The replicas that each object gets when it is scaled.
const MORE: usize = 2;

/// Does the work of a scenario; its first figure is the time that it took.
pub async fn run(scenario: Scenario, trial: &mut Trial<'_>) -> Result<Vec<Figure>> {
    match scenario {
        Scenario::Create => create::run(trial).await,
        Scenario::Scale => {
            trial.replicas += MORE;
            trial.change(&Patch::Merge(json!({"spec": {"replicas": trial.replicas}}))).await
        }
        Scenario::Roll => trial.change(&trial.subject.roll(NEXT_IMAGE)).await,
        Scenario::Restart => restart::run(trial).await,
    }
}

/// Measures one scenario.
pub async fn measure(scenario: Scenario, trial: &mut Trial<'_>) -> Result<Sample> {
    let (setting, subject) = (trial.setting, trial.subject);
    let step = Step::start(format!("{}: {}", subject.label(), scenario.name()));
    let work = async || run(scenario, trial).await;
    let (figures, counts) = Box::pin(setting.meter.measure(subject, setting.objects, work))
        .await
        .with_context(|| format!("{} with {}", scenario.name(), subject.label()))?;
    let shown: Vec<String> = figures
        .iter()
        .map(|figure| format!("{} {}{}", figure.name, figure.unit.number(figure.value), figure.unit.suffix()))
        .collect();
    step.done("");
    println!("  {}\n{}", shown.join("; "), counts.lines(setting.objects));
    Ok(Sample {
        scenario,
        subject,
        objects: setting.objects,
        replicas: trial.replicas,
        run: setting.run,
        figures,
        requests: counts.by_kind,
    })
}
