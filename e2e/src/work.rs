//! Work that keeps every controller busy.

use anyhow::{Context, Result, ensure};
use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, TargetRef, keys::BACKUP_OF,
};
use futures::future::{join_all, try_join_all};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::json;

use crate::{BACKUP_BY, Cluster, Namespace, deployment, is_protected, is_ready, system::NAMESPACE, texts};

/// The workloads.
const SETS: [&str; 3] = ["web-0", "web-1", "web-2"];
/// Pods of each.
const REPLICAS: usize = 4;
/// Protected objects that are deleted in each wave.
const DELETED: usize = 4;

/// Work for every controller in waves: rollouts, commands that are bound, run and deleted, and backups.
pub struct Work {
    /// The namespace of the workloads.
    pub namespace: Namespace,
    maps: Vec<ConfigMap>,
}

impl Work {
    /// Creates what the waves of these names change; backup-controller has to be [`protecting`](crate::protecting).
    pub async fn prepare(cluster: &Cluster, waves: &[&str]) -> Result<Self> {
        let namespace = cluster.namespace("work").await?;
        let replicas = i32::try_from(REPLICAS)?;
        try_join_all(SETS.map(async |name| namespace.create(&deployment(name, replicas)).await)).await?;
        for name in waves.iter().flat_map(|wave| maps_of(wave)) {
            let mut map = ConfigMap { data: Some(texts! { "key" => &name }), ..ConfigMap::default() };
            map.metadata.name = Some(name);
            map.metadata.labels = Some(texts! { BACKUP_BY => "manifest" });
            namespace.create(&map).await?;
        }
        let mut maps = Vec::new();
        for name in waves.iter().flat_map(|wave| maps_of(wave)) {
            maps.push(namespace.until(&name, "is protected", |map: &ConfigMap| is_protected(map)).await);
        }
        join_all(SETS.map(|name| namespace.until_ready(name))).await;
        Ok(Self { namespace, maps })
    }

    /// Starts a wave of work.
    pub async fn begin(&self, wave: &str) -> Result<()> {
        let change = json!({"spec": {"parameters": {"env.VERSION": wave}}});
        for name in SETS {
            self.namespace.merge::<BasicDeployment>(name, change.clone()).await?;
            let spec = BasicDeploymentRestartSpec {
                target_ref: TargetRef { name: name.into(), namespace: None },
                ttl_seconds_after_finished: Some(0),
                ..BasicDeploymentRestartSpec::default()
            };
            let restart = BasicDeploymentRestart::new(&format!("{name}-{wave}"), spec);
            self.namespace.create(&restart).await?;
        }
        for map in maps_of(wave) {
            self.namespace.delete::<ConfigMap>(&map).await?;
        }
        Ok(())
    }

    /// Waits until all work of these waves is done, of which the last one set the version of the pods.
    pub async fn until_done(&self, waves: &[&str]) {
        let last = waves.last().copied().unwrap_or_default();
        for name in waves.iter().flat_map(|wave| SETS.map(|name| format!("{name}-{wave}"))) {
            self.namespace.until_gone::<BasicDeploymentRestart>(&name).await;
        }
        for name in waves.iter().flat_map(|wave| maps_of(wave)) {
            self.namespace.until_gone::<ConfigMap>(&name).await;
        }
        self.namespace
            .until_pods("all pods have the last version", |pods| {
                let is_new = |pod| is_ready(pod) && has_version(pod, last);
                pods.len() == SETS.len() * REPLICAS && pods.iter().all(is_new)
            })
            .await;
        join_all(SETS.map(|name| self.namespace.until_ready(name))).await;
    }

    /// Fails unless there is exactly one backup of each object.
    pub async fn ensure_nothing_is_lost(&self, cluster: &Cluster) -> Result<()> {
        let secrets = Api::<Secret>::namespaced(cluster.client.clone(), NAMESPACE);
        for map in &self.maps {
            let uid = map.uid().context("uid")?;
            let of = ListParams::default().labels(&format!("{BACKUP_OF}={uid}"));
            let backups = secrets.list_metadata(&of).await?.items.len();
            ensure!(backups == 1, "{backups} backups of {}", map.name_any());
        }
        Ok(())
    }
}

fn maps_of(wave: &str) -> Vec<String> {
    (0..DELETED).map(|number| format!("map-{wave}-{number}")).collect()
}

fn has_version(pod: &Pod, version: &str) -> bool {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let mut variables = container.into_iter().flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| variable.name == "VERSION" && variable.value.as_deref() == Some(version))
}
