use std::path::PathBuf;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::ListParams};

use crate::{Cluster, Process, WAIT_TIMEOUT, cluster::path_from, eventually, pods, system::NAMESPACE};

/// A controller of the chain: the name of its chart, release and ServiceAccount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller(&'static str);

/// basic-deployment-controller.
pub const DEPLOYMENTS: Controller = Controller("basic-deployment-controller");
/// basic-replicaset-controller.
pub const REPLICA_SETS: Controller = Controller("basic-replicaset-controller");
/// command-binder.
pub const BINDER: Controller = Controller("command-binder");
/// command-runner.
pub const RUNNER: Controller = Controller("command-runner");
/// command-reaper.
pub const REAPER: Controller = Controller("command-reaper");
/// backup-controller.
pub const BACKUPS: Controller = Controller("backup-controller");

/// All of them.
pub const CONTROLLERS: [Controller; 6] = [DEPLOYMENTS, REPLICA_SETS, BINDER, RUNNER, REAPER, BACKUPS];

/// Those that bring up the pods of a BasicDeployment.
pub const CHAIN: [Controller; 2] = [DEPLOYMENTS, REPLICA_SETS];

/// Those that carry out a command for a BasicDeployment.
pub const COMMANDED: [Controller; 4] = [DEPLOYMENTS, REPLICA_SETS, BINDER, RUNNER];

/// Waits until each controller is ready.
pub async fn until_all_are_ready(cluster: &Cluster) {
    for controller in CONTROLLERS {
        controller.until_ready(cluster).await;
    }
}

impl Controller {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0
    }

    /// The directory of its chart.
    pub fn chart(self) -> Result<PathBuf> {
        Ok(path_from("CATENA_CHARTS")?.join(self.0))
    }

    /// Its user in the API server.
    #[must_use]
    pub fn user(self) -> String {
        format!("system:serviceaccount:{NAMESPACE}:{}", self.0)
    }

    async fn pod(self, cluster: &Cluster) -> Result<Pod> {
        let labels = ListParams::default().labels(&format!("app.kubernetes.io/name={}", self.0));
        let found = Api::<Pod>::namespaced(cluster.client.clone(), NAMESPACE).list(&labels).await?;
        let mut pods = pods::alive(found.items);
        ensure!(pods.len() == 1, "{} has {} pods instead of one", self.0, pods.len());
        Ok(pods.remove(0))
    }

    /// The process that is running now.
    pub async fn process(self, cluster: &Cluster) -> Result<Process> {
        let pod = self.pod(cluster).await?;
        Process::of(self, &pod)
    }

    /// Waits until the controller is ready, and returns its process.
    pub async fn until_ready(self, cluster: &Cluster) -> Process {
        let what = format!("{} is ready", self.0);
        eventually(&what, 2 * WAIT_TIMEOUT, async || {
            let pod = self.pod(cluster).await.map_err(|error| format!("{error:#}"))?;
            if !pods::is_ready(&pod) {
                return Err(pods::describe(&pod));
            }
            self.process(cluster).await.map_err(|error| format!("{error:#}"))
        })
        .await
    }
}
