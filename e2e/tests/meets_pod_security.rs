//! Every pod that a chart starts, hooks included, is admitted where the restricted Pod Security Standard is enforced. The namespaces
//! of all tests enforce it, so that the pods of the examples' templates and backups meet it wherever a test waits for them.

use anyhow::{Context, Result, ensure};
use e2e::{CONTROLLERS, Cluster, Controller, Namespace, helm};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use serde_json::{Value, json};

/// The pods that a chart starts with the values of a file: those of its Deployment, of the Jobs and of the tests.
async fn pods(controller: Controller, values: &str) -> Result<Vec<Value>> {
    let chart = controller.chart()?.display().to_string();
    // The newest API, so that no template is skipped.
    let rendered =
        helm(&["template", "restricted", &chart, "--kube-version", "1.37", "--values", values]).await?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&rendered).context("helm rendered no YAML")?;
    let specs = objects.into_iter().filter_map(|object| match object["kind"].as_str()? {
        "Pod" => Some(object["spec"].clone()),
        "Deployment" | "Job" => Some(object["spec"]["template"]["spec"].clone()),
        _ => None,
    });
    Ok(specs.map(standing_alone).collect())
}

/// A pod without the parts that only the installation has, and otherwise unchanged.
fn standing_alone(mut spec: Value) -> Value {
    if let Some(spec) = spec.as_object_mut() {
        for field in ["serviceAccountName", "priorityClassName"] {
            spec.remove(field);
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "restricted"}, "spec": spec})
}

/// Creates a pod as a dry run.
async fn admit(namespace: &Namespace, pod: &Value) -> Result<kube::Result<Pod>> {
    let pod: Pod = serde_json::from_value(pod.clone())?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    Ok(namespace.api::<Pod>().create(&dry_run, &pod).await)
}

#[tokio::test]
async fn every_pod_of_every_chart_is_admitted_where_restricted_is_enforced() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("restricted").await?;
    let mut refused = Vec::new();
    for controller in CONTROLLERS {
        for values in ["default-values.yaml", "full-values.yaml"] {
            let file = controller.chart()?.join("ci").join(values).display().to_string();
            let pods = pods(controller, &file).await?;
            // The controller, and the hook that tests it.
            ensure!(pods.len() >= 2, "{} starts only {} pods with {values}", controller.name(), pods.len());
            for mut pod in pods {
                let first = pod["spec"]["containers"][0]["name"].as_str().unwrap_or_default().to_owned();
                if let Err(error) = admit(&namespace, &pod).await? {
                    refused.push(format!("{} with {values}: {first}: {error}", controller.name()));
                }
                // Otherwise nothing would be enforced, and everything admitted.
                pod["spec"]["hostNetwork"] = true.into();
                let error =
                    admit(&namespace, &pod).await?.err().context("a pod on the host's network passed")?;
                ensure!(error.to_string().contains("PodSecurity"), "{error}");
            }
        }
    }
    ensure!(refused.is_empty(), "{}", refused.join("\n"));
    Ok(())
}
