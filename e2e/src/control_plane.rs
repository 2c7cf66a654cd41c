//! The processes of a local cluster's control plane.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
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
        let text =
            fs::read_to_string(beside_logs("components.json")?).context("this test needs a local cluster")?;
        let components: Value = serde_json::from_str(&text)?;
        let pid = components[name]["pid"].as_i64().with_context(|| format!("{name} does not run"))?;
        Ok(Self(Pid::from_raw(i32::try_from(pid)?).context("0 is no process")?))
    }

    /// Sends it a signal.
    pub fn signal(self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.0, signal)?)
    }

    /// A copy of what etcd has stored, as of now, beside it.
    pub fn save_etcd() -> Result<()> {
        let etcd = Self::running("etcd")?;
        etcd.signal(Signal::STOP)?;
        let copied = copy("etcd", "etcd.saved");
        etcd.signal(Signal::CONT)?;
        copied
    }

    /// Puts the copy into the place of what etcd has stored since, and starts it and its clients anew: all changes since are gone,
    /// and versions begin again at that of the copy.
    pub async fn restore_etcd(cluster: &Cluster) -> Result<()> {
        let etcd = Self::running("etcd")?;
        etcd.signal(Signal::STOP)?;
        fs::remove_dir_all(beside_logs("etcd")?)?;
        copy("etcd.saved", "etcd")?;
        Self::kill(cluster, "etcd").await?;
        for client in ["api-server", "controller-manager", "scheduler", "kwok"] {
            Self::kill(cluster, client).await?;
        }
        Ok(())
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

/// A path in the directory of the cluster.
fn beside_logs(name: &str) -> Result<PathBuf> {
    Ok(path_from("CATENA_LOGS")?.with_file_name(name))
}

fn copy(from: &str, to: &str) -> Result<()> {
    let copied = Command::new("cp").arg("-a").args([beside_logs(from)?, beside_logs(to)?]).status()?;
    ensure!(copied.success(), "cp {from} {to}: {copied}");
    Ok(())
}
