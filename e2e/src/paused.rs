use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{Cluster, Controller, WAIT_TIMEOUT, cleanup::clean_up, eventually, system::NAMESPACE};

/// A controller without a pod, until this is dropped.
pub struct Paused(Controller);

impl Paused {
    /// Ends it.
    pub async fn pause(cluster: &Cluster, controller: Controller) -> Result<Self> {
        cluster.ensure_it_may_change(controller)?;
        let process = controller.until_ready(cluster).await;
        let paused = Self(controller);
        scale(cluster.client.clone(), controller, 0).await?;
        eventually(&format!("{} has ended", controller.name()), WAIT_TIMEOUT, async || {
            match process.resident() {
                Err(_) => Ok(()),
                Ok(_) => Err("it still runs"),
            }
        })
        .await;
        Ok(paused)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        let controller = self.0;
        let what = format!("starting {} again", controller.name());
        clean_up(&what, async move |client| scale(client, controller, 1).await);
    }
}

async fn scale(client: Client, controller: Controller, replicas: i32) -> Result<()> {
    let scale = json!({"spec": {"replicas": replicas}});
    let deployments = Api::<Deployment>::namespaced(client, NAMESPACE);
    deployments.patch_scale(controller.name(), &PatchParams::default(), &Patch::Merge(scale)).await?;
    Ok(())
}
