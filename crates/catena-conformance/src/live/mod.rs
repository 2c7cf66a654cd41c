//! Tries the replica contract on real objects, in a namespace of its own: behaviour, and not fields.

mod manifest;
mod observed;
mod requirement;
mod run;
mod stage;
mod trials;

use anyhow::{Error, Result, anyhow};
use catena_cluster::{Cluster, Kind};
use catena_terminal::{Interrupt, tell};

pub use self::{
    manifest::Manifest,
    requirement::{Limits, Line},
};
pub use replica_contract::Mapping;

use self::{
    observed::{Child, Expectation, Observed, Replica},
    requirement::{Ledger, Requirement, Seen},
    run::Run,
    stage::Stage,
};
use super::Report;

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
///
/// # Errors
/// When a request of the trials fails, or they are interrupted.
pub async fn check(cluster: Cluster, subject: &Subject, limits: &Limits) -> Result<Report> {
    let mut interrupt = Interrupt::new()?;
    let mut stage = Stage::planned(cluster, subject.kind.clone())?;
    let again = || Err(anyhow!("interrupted again"));
    let stopped = || anyhow!("interrupted");
    if let Err(failure) = interrupt.or(stage.set_up()).await.unwrap_or_else(|| Err(stopped())) {
        if !is_refusal(&failure)
            && let Err(error) = interrupt.or(stage.withdraw()).await.unwrap_or_else(again)
        {
            tell(&format!("the namespace {} may be left: {error:#}", stage.name()));
        }
        return Err(failure);
    }
    let run = Run::new(stage, subject, limits);
    let trials = Box::pin(async {
        tokio::select! {
            ended = trials::all(&run) => ended,
            never = run.follow() => match never {},
        }
    });
    let ended = interrupt.or(trials).await.unwrap_or_else(|| Err(stopped()));
    run.step(12, "removing the namespace");
    let removed = interrupt.or(run.stage.remove()).await;
    run.status.clear();
    if let Err(error) = removed.unwrap_or_else(again) {
        tell(&format!("the namespace {} was not removed: {error:#}", run.stage.name()));
    }
    ended.map(|()| run.ledger.report(&subject.kind.resource))
}

/// Whether the server has answered that it did not do it; other errors, such as a timeout, tell nothing.
fn is_refusal(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code < 500)
}

#[cfg(test)]
mod tests {
    use catena_cluster::testing::{answering, status};
    use http::{Method, StatusCode};
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_namespace_whose_creation_may_have_succeeded_is_deleted() {
        for (code, is_deleted) in [(504, true), (403, false), (409, false)] {
            let (cluster, requests) = answering(move |method, _, _| match *method {
                Method::POST => status(code, "Refused", "no"),
                _ => (StatusCode::OK, json!({"kind": "Status", "status": "Success"})),
            });
            let kind = cluster.kinds.find("basicreplicasets").unwrap().clone();
            let text = "{apiVersion: catena.dev/v1alpha1, kind: BasicReplicaSet, metadata: {name: web}}";
            let manifest = Manifest::read(text, &kind).unwrap();
            let subject =
                Subject { kind, mapping: Mapping::default(), good: manifest.clone(), bad: manifest };
            let limits = Limits { timeouts: Vec::new(), window: std::time::Duration::ZERO };
            let error = check(cluster, &subject, &limits).await.unwrap_err();
            assert!(error.to_string().contains("cannot be created"), "{error:#}");
            let requests = requests.lock().unwrap();
            assert_eq!(
                requests.iter().any(|request| request.starts_with("DELETE")),
                is_deleted,
                "{requests:?}"
            );
        }
    }
}
