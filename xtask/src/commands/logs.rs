//! `cargo xtask logs`

use std::{
    ffi::OsString,
    fs::{self, DirEntry, File},
    io::{Read, Write},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::ListParams};
use local_cluster::{KindCluster, LocalCluster, NODE_NAME, client};

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
    let files = find(&cluster, controller).await?;
    let Some(first) = files.first() else {
        bail!("no log matches {controller:?}; there are: {}", names(&cluster)?.join(", "));
    };
    for file in &files {
        if files.len() > 1 {
            println!("==> {} <==", file.display());
        }
        show(file, follow && file == first).await?;
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
    let mut arguments = vec!["logs".to_owned(), "--namespace".to_owned(), namespace, pod.name_any()];
    arguments.extend(["--all-containers".to_owned(), format!("--follow={follow}")]);
    pass_on::kubectl(name, &arguments.into_iter().map(OsString::from).collect::<Vec<_>>())
}

async fn find(cluster: &LocalCluster, controller: &str) -> Result<Vec<PathBuf>> {
    let component = cluster.log_of(controller);
    if component.is_file() {
        return Ok(vec![component]);
    }
    // Logs can be read even while the API server is down.
    if let Some(pod) = newest_pod(cluster, controller).await.unwrap_or_default() {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let namespace = pod.namespace().unwrap_or_default();
        let files = containers
            .map(|container| cluster.log_of_container(&namespace, &pod.name_any(), &container.name))
            .filter(|file| file.is_file())
            .collect::<Vec<_>>();
        if !files.is_empty() {
            return Ok(files);
        }
    }
    newest_file(cluster, controller)
}

async fn newest_pod(cluster: &LocalCluster, controller: &str) -> Result<Option<Pod>> {
    let client = client(&cluster.kubeconfig()).await?;
    let on_host = ListParams::default().fields(&format!("spec.nodeName={NODE_NAME}"));
    let pods = Api::<Pod>::all(client).list(&on_host).await?;
    Ok(newest(&pods.items, controller).cloned())
}

fn newest<'p>(pods: &'p [Pod], controller: &str) -> Option<&'p Pod> {
    let matches = |pod: &&Pod| {
        pod.name_any().contains(controller)
            || pod.labels().get("app.kubernetes.io/name").is_some_and(|name| name == controller)
    };
    pods.iter().filter(matches).max_by_key(|pod| pod.creation_timestamp().map(|time| time.0))
}

/// The log of a pod that is gone already.
fn newest_file(cluster: &LocalCluster, controller: &str) -> Result<Vec<PathBuf>> {
    let newest = files(cluster)?
        .filter(|entry| entry.file_name().to_string_lossy().contains(controller))
        .max_by_key(|entry| entry.metadata().and_then(|metadata| metadata.modified()).ok());
    Ok(newest.map(|entry| entry.path()).into_iter().collect())
}

fn files(cluster: &LocalCluster) -> Result<impl Iterator<Item = DirEntry>> {
    let directory = cluster.logs();
    let entries =
        fs::read_dir(&directory).with_context(|| format!("could not list {}", directory.display()))?;
    Ok(entries.filter_map(Result::ok))
}

/// The names of all logs.
fn names(cluster: &LocalCluster) -> Result<Vec<String>> {
    let mut names: Vec<String> = files(cluster)?
        .filter_map(|entry| entry.file_name().to_string_lossy().strip_suffix(".log").map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
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
