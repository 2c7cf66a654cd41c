//! Each object gets two replicas more, until all are ready.

use anyhow::Result;
use kube::api::Patch;
use serde_json::json;

use super::super::{figure::Figure, trial::Trial};

const MORE: usize = 2;

pub async fn run(trial: &mut Trial<'_>) -> Result<Vec<Figure>> {
    let replicas = trial.replicas.unwrap_or_default() + MORE;
    trial.replicas = Some(replicas);
    trial.change(&Patch::Merge(json!({"spec": {"replicas": replicas}}))).await
}
