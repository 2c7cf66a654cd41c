//! The processes of a local cluster's control plane.

use std::fs;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Namespace as CoreNamespace, Pod};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{Cluster, WAIT_TIMEOUT, cluster::path_from, eventually, is_alive, is_ready, kubectl};

/// A component of the control plane on this machine, such as `etcd` or `api-server`. It is started again when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component(Pid);

impl Component {
    /// The process that is running now.
    pub fn running(name: &str) -> Result<Self> {
        let file = path_from("CATENA_LOGS")?.with_file_name("components.json");
        let text = fs::read_to_string(&file).context("this test needs a local cluster")?;
        let components: Value = serde_json::from_str(&text)?;
        let pid = components[name]["pid"].as_i64().with_context(|| format!("{name} does not run"))?;
        Ok(Self(Pid::from_raw(i32::try_from(pid)?).context("0 is no process")?))
    }

    /// Sends it a signal.
    pub fn signal(self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.0, signal)?)
    }

    /// Kills the one with this name, and waits until another process of it serves.
    pub async fn kill(cluster: &Cluster, name: &str) -> Result<()> {
        let killed = Self::running(name)?;
        killed.signal(Signal::KILL)?;
        eventually(&format!("another {name} runs"), WAIT_TIMEOUT, async || match Self::running(name) {
            Ok(running) if running != killed => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        eventually("the API server reads and is ready", WAIT_TIMEOUT, async || {
            let namespaces = cluster.all::<CoreNamespace>();
            namespaces.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            kubectl(&["get", "--raw", "/readyz"]).await.map_err(|error| format!("{error:#}"))
        })
        .await;
        // A fake kubelet does not repeat a write that failed; it looks at a pod again when the pod changes.
        let touched = Patch::Merge(json!({"metadata": {"annotations": {"e2e.catena.dev/outage": name}}}));
        for pod in Api::<Pod>::all(cluster.client.clone()).list(&ListParams::default()).await? {
            if is_ready(&pod) && is_alive(&pod) {
                continue;
            }
            let pods = Api::<Pod>::namespaced(cluster.client.clone(), &pod.namespace().unwrap_or_default());
            match pods.patch_metadata(&pod.name_any(), &PatchParams::default(), &touched).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                patched => drop(patched?),
            }
        }
        Ok(())
    }
}
