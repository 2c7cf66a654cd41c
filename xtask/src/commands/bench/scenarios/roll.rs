//! Each object gets another image, until all pods are replaced.

use std::time::Instant;

use anyhow::Result;
use kube::api::PatchParams;

use super::super::{
    figure::{Figure, TIME},
    pod::NEXT_IMAGE,
    trial::{Trial, each},
};

pub async fn run(trial: &Trial<'_>) -> Result<Vec<Figure>> {
    let change = trial.subject.roll(NEXT_IMAGE);
    let started = Instant::now();
    each(trial.names(), async |name| {
        trial.objects.patch(&name, &PatchParams::default(), &change).await.map(drop)
    })
    .await?;
    trial.until_ready().await?;
    Ok(vec![Figure::seconds(TIME, started.elapsed())])
}
