//! A controller with two replicas, of which one leads.

use anyhow::{Context, Result};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};

use crate::{
    BACKUPS, Cluster, Controller, Process, WAIT_TIMEOUT, eventually, kubectl, pods, protecting,
    system::NAMESPACE,
};

/// Both replicas of a controller.
#[derive(Debug)]
pub struct Replicas {
    /// The controller.
    pub controller: Controller,
    /// The name of the leader's pod.
    pub leader: String,
    /// The leader's process.
    pub process: Process,
}

/// The values for two replicas of a controller in the suite.
pub fn doubled(controller: Controller) -> Result<Value> {
    let mut values = if controller == BACKUPS { protecting()? } else { json!({}) };
    values["replicas"] = 2.into();
    Ok(values)
}

impl Replicas {
    /// Waits until both are ready, and one leads.
    pub async fn until_ready(cluster: &Cluster, controller: Controller) -> Result<Self> {
        // Otherwise, one of the two may belong to the former revision.
        let deployment = format!("deployment/{}", controller.name());
        kubectl(&["rollout", "status", &deployment, "--namespace", NAMESPACE, "--timeout=120s"]).await?;
        let of_it = ListParams::default().labels(&format!("app.kubernetes.io/name={}", controller.name()));
        let api = Api::<Pod>::namespaced(cluster.client.clone(), NAMESPACE);
        let what = format!("two replicas of {} are ready, and one leads", controller.name());
        let leader = eventually(&what, 2 * WAIT_TIMEOUT, async || {
            let pods = api.list(&of_it).await.map_err(|error| error.to_string())?;
            let pods = pods::alive(pods.items);
            let holder = holder(cluster, controller).await.map_err(|error| error.to_string())?;
            let leader = pods.iter().find(|pod| pod.name_any() == holder).cloned();
            let described =
                || format!("{holder:?} of {:?}", pods.iter().map(pods::describe).collect::<Vec<_>>());
            leader.filter(|_| pods.len() == 2 && pods.iter().all(pods::is_ready)).ok_or_else(described)
        })
        .await;
        let process = Process::of(controller, &leader).context("the leader's process")?;
        Ok(Self { controller, leader: leader.name_any(), process })
    }

    /// Waits until another pod has the Lease.
    pub async fn until_taken_over(&self, cluster: &Cluster) -> String {
        let what = format!("another replica of {} leads", self.controller.name());
        eventually(&what, WAIT_TIMEOUT, async || match holder(cluster, self.controller).await {
            Ok(holder) if !holder.is_empty() && holder != self.leader => Ok(holder),
            other => Err(format!("{other:?}")),
        })
        .await
    }
}

/// The name of the pod that has a controller's Lease; empty if none has it.
async fn holder(cluster: &Cluster, controller: Controller) -> kube::Result<String> {
    let leases = Api::<Lease>::namespaced(cluster.client.clone(), NAMESPACE);
    let lease = leases.get_opt(controller.name()).await?;
    Ok(lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default())
}
