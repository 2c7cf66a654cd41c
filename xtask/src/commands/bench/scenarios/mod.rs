//! The work of the scenarios, each in a file of its own.

mod backups;
mod commands;
mod create;
mod delete;
mod restart;
mod roll;
mod scale;
mod steady;

use anyhow::{Context, Result};
use local_cluster::Step;

use super::{figure::Figure, sample::Sample, scenario::Scenario, trial::Trial};

pub use backups::{NAMESPACE as BACKUPS_NAMESPACE, values as backup_values};

/// Does the work of a scenario; its first figure, if it has any, is the time that it took.
pub async fn run(scenario: Scenario, trial: &mut Trial<'_>) -> Result<Vec<Figure>> {
    match scenario {
        Scenario::Create => create::run(trial).await,
        Scenario::Steady => steady::run().await,
        Scenario::Scale => scale::run(trial).await,
        Scenario::Roll => roll::run(trial).await,
        Scenario::Commands => commands::run(trial).await,
        Scenario::Restart => restart::run(trial).await,
        Scenario::Delete => delete::run(trial).await,
        Scenario::Backups => backups::run(trial).await,
    }
}

/// Prepares what is not measured.
pub async fn prepare(scenario: Scenario, trial: &mut Trial<'_>) -> Result<()> {
    if scenario == Scenario::Backups { backups::prepare(trial).await } else { Ok(()) }
}

/// Measures one scenario.
pub async fn measure(scenario: Scenario, trial: &mut Trial<'_>) -> Result<Sample> {
    let (setting, subject) = (trial.setting, trial.subject);
    let step = Step::start(format!("{}: {}", subject.label(), scenario.name()));
    let work = async || run(scenario, trial).await;
    let (figures, counts) = Box::pin(setting.meter.measure(subject, scenario, setting.objects, work))
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
