//! The objects are deleted, until no pod is left.

use std::time::Instant;

use anyhow::Result;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};

use super::super::{
    figure::{Figure, TIME},
    trial::{Trial, each},
};

pub async fn run(trial: &Trial<'_>) -> Result<Vec<Figure>> {
    let all = trial.objects.list_metadata(&ListParams::default()).await?;
    let started = Instant::now();
    each(all.items.iter().map(ResourceExt::name_any), async |name| {
        trial.objects.delete(&name, &DeleteParams::background()).await.map(drop)
    })
    .await?;
    trial.until_true("no pod is left", async || trial.has_no_pod().await).await?;
    Ok(vec![Figure::seconds(TIME, started.elapsed())])
}
