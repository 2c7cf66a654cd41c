//! Each object gets two replicas more, until all are ready.

use std::time::Instant;

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::super::{
    figure::{Figure, TIME},
    trial::{Trial, each},
};

const MORE: usize = 2;

pub async fn run(trial: &mut Trial<'_>) -> Result<Vec<Figure>> {
    let replicas = trial.replicas.unwrap_or_default() + MORE;
    trial.replicas = Some(replicas);
    let (trial, change) = (&*trial, Patch::Merge(json!({"spec": {"replicas": replicas}})));
    let started = Instant::now();
    each(trial.names(), async |name| {
        trial.objects.patch(&name, &PatchParams::default(), &change).await.map(drop)
    })
    .await?;
    trial.until_ready().await?;
    Ok(vec![Figure::seconds(TIME, started.elapsed())])
}
