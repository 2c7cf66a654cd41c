//! The Helm charts of the checkout, and installing them on a local cluster.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};
use local_cluster::{Interrupt, Step, client, files};
use serde_json::json;

use crate::{admission_knows, cluster::Cluster, workspace};

/// The namespace that the controllers are installed in.
pub const NAMESPACE: &str = "catena-system";

const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// A chart's directory; its name is the name of the controller.
pub struct Chart {
    pub name: String,
    pub directory: PathBuf,
    /// Value files on top of the cluster's.
    pub values: Vec<PathBuf>,
}

impl Chart {
    /// Value files that must all render: charts/NAME/ci/*.yaml.
    pub fn ci_values(&self) -> Vec<PathBuf> {
        let files = files::list(&self.directory.join("ci")).unwrap_or_default();
        files.into_iter().filter(|path| path.extension() == Some("yaml".as_ref())).collect()
    }
}

/// All charts of the checkout.
pub fn all() -> Vec<Chart> {
    within(&workspace::charts())
}

/// All charts, with the values of the end-to-end suite.
pub fn of_the_suite() -> Vec<Chart> {
    let mut charts = all();
    for chart in &mut charts {
        let values = workspace::suite_values().join(format!("{}.yaml", chart.name));
        chart.values.extend(values.is_file().then_some(values));
    }
    charts
}

/// The charts in a directory: its directories with a Chart.yaml, unlike `_shared`.
pub fn within(directory: &Path) -> Vec<Chart> {
    let directories = files::list(directory).unwrap_or_default();
    directories
        .into_iter()
        .filter(|directory| directory.join("Chart.yaml").is_file())
        .filter_map(|directory| {
            let name = directory.file_name()?.to_str()?.to_owned();
            Some(Chart { name, directory, values: Vec::new() })
        })
        .collect()
}

/// Installs or upgrades the charts with the cluster's values, all at once, and waits until they are ready, because they
/// must not depend on an order.
pub async fn install(cluster: &Cluster, charts: &[Chart], interrupt: &Interrupt) -> Result<()> {
    let client = client(&cluster.access.kubeconfig).await?;
    create_namespace(&client).await?;
    interrupt.or(Box::pin(admission_knows::create_missing_kinds(&client))).await?;
    for chart in charts {
        let step = Step::start(format!("helm upgrade --install {}", chart.name));
        let log = cluster.access.logs.join(format!("helm-{}.log", chart.name));
        interrupt
            .run_quietly(&mut helm_install(cluster, chart), &log)
            .await
            .with_context(|| format!("could not install {}", chart.name))?;
        step.done("");
    }
    wait(cluster, interrupt).await?;
    let step = Step::start("their kinds are known as owners (up to 30 s)");
    interrupt.or(Box::pin(admission_knows::our_kinds(&cluster.access.kubeconfig))).await?;
    step.done("");
    Ok(())
}

/// Waits until the controllers are ready; an error names the reasons why they are not.
pub async fn wait(cluster: &Cluster, interrupt: &Interrupt) -> Result<()> {
    let client = client(&cluster.access.kubeconfig).await?;
    let step = Step::start("controllers");
    let ready = interrupt.or(wait_until_ready(&client, cluster, &step)).await?;
    step.done(format!("{ready} ready"));
    Ok(())
}

fn helm_install(cluster: &Cluster, chart: &Chart) -> Command {
    let mut helm = cluster.access.helm();
    helm.args(["upgrade", "--install", "--take-ownership", &chart.name])
        .arg(&chart.directory)
        .args(["--namespace", NAMESPACE, "--values"])
        .arg(cluster.values_of(&chart.name))
        .args(chart.values.iter().flat_map(|values| ["--values".as_ref(), values.as_os_str()]));
    helm
}

async fn create_namespace(client: &Client) -> Result<()> {
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": NAMESPACE, "labels": { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    let namespace = serde_json::from_value(namespace)?;
    match Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error).with_context(|| format!("could not create the namespace {NAMESPACE}")),
    }
}

async fn wait_until_ready(client: &Client, cluster: &Cluster, step: &Step) -> Result<usize> {
    let deadline = Instant::now() + READY_TIMEOUT;
    let deployments = Api::<Deployment>::namespaced(client.clone(), NAMESPACE);
    loop {
        let all = deployments.list(&ListParams::default()).await.context("could not list Deployments")?.items;
        let waiting: Vec<String> =
            all.iter().filter(|deployment| !is_ready(deployment)).map(ResourceExt::name_any).collect();
        if waiting.is_empty() {
            return Ok(all.len());
        }
        if Instant::now() > deadline {
            bail!(
                "{} not ready after {} s: {}; read the logs in {}",
                waiting.join(", "),
                READY_TIMEOUT.as_secs(),
                reasons(client).await.join("; "),
                cluster.access.logs.display()
            );
        }
        step.note(format!("waiting for {}", waiting.join(", ")));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn is_ready(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    deployment.status.as_ref().is_some_and(|status| {
        status.observed_generation == deployment.metadata.generation
            && status.updated_replicas.unwrap_or_default() == wanted
            && status.available_replicas.unwrap_or_default() == wanted
            && status.replicas.unwrap_or_default() == wanted
    })
}

/// The reasons of the pods that are not ready.
async fn reasons(client: &Client) -> Vec<String> {
    let pods = Api::<Pod>::namespaced(client.clone(), NAMESPACE).list(&ListParams::default()).await;
    let mut reasons: Vec<String> =
        pods.into_iter().flat_map(|pods| pods.items).filter_map(|pod| reason(&pod)).collect();
    if reasons.is_empty() {
        reasons.push("no pod says why".to_owned());
    }
    reasons
}

fn reason(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let waiting = status.container_statuses.iter().flatten().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        Some(format!(
            "{}: {}",
            waiting.reason.as_deref().unwrap_or_default(),
            waiting.message.as_deref().unwrap_or_default()
        ))
    });
    let condition = status.conditions.iter().flatten().find(|condition| condition.status == "False");
    let because = waiting.or_else(|| condition?.message.clone())?;
    Some(format!("{} {because}", pod.name_any()))
}
