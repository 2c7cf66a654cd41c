//! `cargo xtask logs`

use std::{
    ffi::OsString,
    fs::File,
    io::{Read, Write},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::ListParams};
use local_cluster::{KindCluster, LocalCluster, NODE_NAME, client, files};

use super::pass_on;
use crate::cluster::{Cluster, ensure_set_up};

const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Prints the log of the newest pod that matches, or of a component of a local cluster.
pub async fn run(name: &str, controller: &str, follow: bool) -> Result<()> {
    let cluster = LocalCluster::named(name)?;
    if !cluster.exists() && KindCluster::named(name)?.is_known() {
        return on_kind(name, controller, follow).await;
    }
    ensure_set_up(&cluster)?;
    let logs = find(&cluster, controller).await?;
    let Some(first) = logs.first() else {
        let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let all: Vec<String> = files::list(&cluster.logs())?.iter().map(stem).collect();
        bail!("no log matches {controller:?}; there are: {}", all.join(", "));
    };
    for log in &logs {
        if logs.len() > 1 {
            println!("==> {} <==", log.display());
        }
        show(log, follow && log == first).await?;
    }
    Ok(())
}

/// On kind, the logs of pods are on the nodes, and kubectl has to fetch them.
async fn on_kind(name: &str, controller: &str, follow: bool) -> Result<()> {
    let kubeconfig = Cluster::named(name)?.access.kubeconfig;
    let all = Api::<Pod>::all(client(&kubeconfig).await?).list(&ListParams::default()).await?;
    let Some(pod) = newest(&all.items, controller) else {
        let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
        bail!("no pod matches {controller:?}; there are: {}", names.join(", "));
    };
    let namespace = pod.namespace().unwrap_or_default();
    let (pod, follow) = (pod.name_any(), format!("--follow={follow}"));
    let arguments = ["logs", "--namespace", &namespace, &pod, "--all-containers", &follow];
    pass_on::kubectl(name, &arguments.map(OsString::from))
}

async fn find(cluster: &LocalCluster, controller: &str) -> Result<Vec<PathBuf>> {
    let component = cluster.log_of(controller);
    if component.is_file() {
        return Ok(vec![component]);
    }
    // Logs can be read even while the API server is down.
    let of_pod = of_newest_pod(cluster, controller).await.unwrap_or_default();
    if !of_pod.is_empty() {
        return Ok(of_pod);
    }
    // The log of a pod that is gone already.
    let is_one = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().contains(controller);
    let logs = files::list(&cluster.logs())?.into_iter().filter(is_one);
    let changed = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    Ok(logs.max_by_key(changed).into_iter().collect())
}

async fn of_newest_pod(cluster: &LocalCluster, controller: &str) -> Result<Vec<PathBuf>> {
    let on_host = ListParams::default().fields(&format!("spec.nodeName={NODE_NAME}"));
    let pods = Api::<Pod>::all(client(&cluster.kubeconfig()).await?).list(&on_host).await?;
    let Some(pod) = newest(&pods.items, controller) else { return Ok(Vec::new()) };
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let logs = containers.map(|container| cluster.log_of_container(&namespace, &name, &container.name));
    Ok(logs.filter(|log| log.is_file()).collect())
}

fn newest<'p>(pods: &'p [Pod], controller: &str) -> Option<&'p Pod> {
    let matches = |pod: &&Pod| {
        pod.name_any().contains(controller)
            || pod.labels().get("app.kubernetes.io/name").is_some_and(|name| name == controller)
    };
    pods.iter().filter(matches).max_by_key(|pod| pod.creation_timestamp().map(|time| time.0))
}

async fn show(path: &PathBuf, follow: bool) -> Result<()> {
    let mut file = File::open(path).with_context(|| format!("could not open {}", path.display()))?;
    let mut output = std::io::stdout().lock();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut buffer).with_context(|| format!("could not read {}", path.display()))?;
        if output.write_all(&buffer[..read]).and_then(|()| output.flush()).is_err() {
            // The reader has seen enough: `| head`.
            return Ok(());
        }
        if read == 0 {
            if !follow {
                return Ok(());
            }
            tokio::time::sleep(FOLLOW_INTERVAL).await;
        }
    }
}
