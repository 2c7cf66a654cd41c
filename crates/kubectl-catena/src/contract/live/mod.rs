//! Tries the replica contract on real objects, in a namespace of its own: behaviour, and not fields.

mod claim;
mod limits;
mod manifest;
mod replica;
mod report;
mod requirement;
mod run;
mod scene;
mod stage;
mod trials;

use anyhow::{Context, Result, bail};
use basic_deployment_controller::outputs::Mapping;
use tokio::signal::unix::{SignalKind, signal};

pub use self::{limits::Limits, manifest::Manifest, report::Requirements, requirement::Requirement};

use self::{report::Ledger, run::Run, scene::Scene, stage::Stage};
use super::Report;
use crate::{connection::Cluster, issue::Progress, kinds::Kind};

/// A child to try.
pub struct Subject {
    /// Its kind.
    pub kind: Kind,
    /// Its contract.
    pub mapping: Mapping,
    /// A child that serves.
    pub good: Manifest,
    /// One that never serves: the same with a change, or another one beside it.
    pub bad: Manifest,
}

/// Makes the trials. The namespace is removed afterwards, also after an interruption.
pub async fn check(cluster: Cluster, subject: &Subject, limits: &Limits) -> Result<Report<Requirements>> {
    let ledger = Ledger::default();
    let stage = Stage::set_up(cluster, subject.kind.clone()).await?;
    let progress = Progress::new(&format!("{} in {}", subject.kind.resource.kind, stage.name()));
    let scene = Scene::new(&stage, &subject.mapping, &ledger);
    let run = Run {
        stage: &stage,
        scene: &scene,
        ledger: &ledger,
        mapping: &subject.mapping,
        good: &subject.good,
        bad: &subject.bad,
        limits,
        progress: &progress,
    };
    let ended = tokio::select! {
        ended = trials::all(&run) => ended,
        never = scene.follow() => match never {},
        interrupted = interruption() => interrupted.and_then(|()| bail!("interrupted")),
    };
    run.step(11, "removing the namespace");
    let removed = tokio::select! {
        removed = stage.remove() => removed,
        interrupted = interruption() => interrupted.and_then(|()| bail!("interrupted again")),
    };
    progress.clear();
    if let Err(error) = removed {
        eprintln!("the namespace {} was not removed: {error:#}", stage.name());
    }
    ended.map(|()| ledger.report(&stage.kind().resource))
}

/// Waits for SIGINT, as of Ctrl-C, or SIGTERM.
async fn interruption() -> Result<()> {
    let listen = |kind| signal(kind).context("signals cannot be received");
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
