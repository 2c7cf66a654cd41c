//! The objects are created, until all are ready.

use std::time::Instant;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DynamicObject, ListParams, PostParams},
    discovery::ApiResource,
};

use super::super::{
    figure::{Figure, TIME, Unit},
    trial::{Trial, each},
};

pub async fn run(trial: &Trial<'_>) -> Result<Vec<Figure>> {
    let started = Instant::now();
    let (replicas, pod_bytes) = (trial.setting.replicas, trial.setting.pod_bytes);
    each(trial.names(), async |name| {
        let object = trial.subject.object(&name, replicas, pod_bytes);
        trial.objects.create(&PostParams::default(), &object).await.map(drop)
    })
    .await
    .context("could not create the objects")?;
    let created = started.elapsed();
    trial.until_ready().await?;
    let ready = started.elapsed();
    Ok(vec![
        Figure::seconds(TIME, ready),
        Figure::seconds("created after", created),
        Figure::new("size of a pod", Unit::Bytes, size_of_a_pod(trial).await?),
    ])
}

/// The size of any pod, as JSON.
async fn size_of_a_pod(trial: &Trial<'_>) -> Result<f64> {
    let resource = ApiResource::erase::<Pod>(&());
    let client = trial.setting.meter.client.clone();
    let pods: Api<DynamicObject> = Api::namespaced_with(client, &trial.namespace, &resource);
    let pods = pods.list(&ListParams::default().limit(1)).await?;
    let pod = serde_json::to_vec(pods.items.first().context("there is no pod")?)?;
    Ok(f64::from(u32::try_from(pod.len())?))
}
