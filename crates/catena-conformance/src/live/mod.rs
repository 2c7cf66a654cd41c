//! Tries the replica contract on real objects, in a namespace of its own: behaviour, and not fields.

mod manifest;
mod observed;
mod requirement;
mod run;
mod stage;
mod trials;

use anyhow::{Result, anyhow, bail};
use catena_api::contract::ReplicaContract;
use catena_cluster::{Cluster, Kind};
use catena_terminal::Interrupt;
use replica_contract::Mapping;

pub use self::{
    manifest::Manifest,
    requirement::{Limits, Line},
};

use self::{
    observed::{Child, Expectation, Observed, Replica},
    requirement::{Ledger, Requirement, Seen},
    run::Run,
    stage::Stage,
};
use super::Report;

/// A child to try.
pub struct Subject {
    kind: Kind,
    mapping: Mapping,
    /// A child that serves.
    good: Manifest,
    /// One that never serves: the same with a change, or another one beside it.
    bad: Manifest,
}

impl Subject {
    /// A child of a kind with this contract.
    ///
    /// # Errors
    /// When an expression of the contract does not compile.
    pub fn new(kind: &Kind, contract: ReplicaContract, good: Manifest, bad: Manifest) -> Result<Self> {
        let mapping = Mapping::try_from(contract).map_err(|error| anyhow!("{error}"))?;
        Ok(Self { kind: kind.clone(), mapping, good, bad })
    }
}

/// Makes the trials. The namespace is removed afterwards, also after an interruption.
///
/// # Errors
/// When a request of the trials fails, or they are interrupted.
pub async fn check(cluster: Cluster, subject: &Subject, limits: &Limits) -> Result<Report> {
    let mut interrupt = Interrupt::new()?;
    let mut stage = Stage::planned(cluster, subject.kind.clone())?;
    let again = || Err(anyhow!("interrupted again"));
    let Some(created) = interrupt.or(stage.set_up()).await else {
        if let Err(error) = interrupt.or(stage.withdraw()).await.unwrap_or_else(again) {
            eprintln!("the namespace {} may be left: {error:#}", stage.name());
        }
        bail!("interrupted");
    };
    created?;
    let run = Run::new(stage, subject, limits);
    let trials = Box::pin(async {
        tokio::select! {
            ended = trials::all(&run) => ended,
            never = run.follow() => match never {},
        }
    });
    let ended = interrupt.or(trials).await.unwrap_or_else(|| Err(anyhow!("interrupted")));
    run.step(11, "removing the namespace");
    let removed = interrupt.or(run.stage.remove()).await;
    run.status.clear();
    if let Err(error) = removed.unwrap_or_else(again) {
        eprintln!("the namespace {} was not removed: {error:#}", run.stage.name());
    }
    ended.map(|()| run.ledger.report(&subject.kind.resource))
}
