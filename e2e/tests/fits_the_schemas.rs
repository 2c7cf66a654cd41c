//! The API server accepts every field that the charts render, under its own schemas, validation and
//! admission, without anything being created.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use e2e::{
    CONTROLLERS, Cluster, Controller, DEPLOYMENTS, ForeignKinds, REPLICA_SETS, helm, kubectl_with_input,
};
use serde_json::{Value, json};

/// The YAML files in a part of a chart.
fn files(controller: Controller, part: &str) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(controller.chart()?.join(part))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    Ok(files)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// All objects of a chart, rendered for this version of Kubernetes.
async fn render(controller: Controller, values: &Path, version: &str) -> Result<String> {
    let (chart, values) = (controller.chart()?.display().to_string(), values.display().to_string());
    // Under a name that no release has, so that nothing is merged with existing objects, and that YAML reads as a number.
    helm(&["template", "20261123", &chart, "--kube-version", version, "--values", &values]).await
}

/// Whether a rule of RBAC has an empty list of names, which applies to all names.
fn lists_no_names(rendered: &str) -> bool {
    let next = rendered.lines().skip(1).chain([""]);
    let mut lines = rendered.lines().zip(next);
    lines.any(|(line, next)| line.trim() == "resourceNames:" && !next.trim_start().starts_with("- "))
}

#[tokio::test]
async fn every_chart_with_each_of_its_value_files_is_what_the_api_server_takes() -> Result<()> {
    e2e::needs!(NoKindsOfOthers);
    let cluster = Cluster::with(&[]).await?;
    let _kinds = ForeignKinds::install(&["prometheus-operator"]).await?;
    let version = cluster.client.apiserver_version().await?.git_version;
    let mut refused = Vec::new();
    for controller in CONTROLLERS {
        for values in files(controller, "ci")? {
            let rendered = render(controller, &values, &version).await?;
            if lists_no_names(&rendered) {
                let title = format!("{} with {}", controller.name(), name(&values));
                refused
                    .push(format!("{title}: resourceNames without names is about all objects of the kind"));
            }
            let (taken, said) = kubectl_with_input(
                &["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename", "-"],
                &rendered,
            )
            .await?;
            if !taken || said.contains("Warning") {
                let errors: Vec<&str> =
                    said.lines().filter(|line| !line.ends_with("(server dry run)")).collect();
                refused.push(format!("{} with {}: {}", controller.name(), name(&values), errors.join("\n")));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n\n"));
    Ok(())
}

/// Otherwise an option would never have been tried.
#[tokio::test]
async fn the_full_values_leave_out_no_template() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let version = cluster.client.apiserver_version().await?.git_version;
    for controller in CONTROLLERS {
        let values = files(controller, "ci")?.into_iter().find(|path| path.ends_with("full-values.yaml"));
        let values = values.with_context(|| format!("{} has no ci/full-values.yaml", controller.name()))?;
        let rendered = render(controller, &values, &version).await?;
        for template in files(controller, "templates")? {
            let source = format!("# Source: {}/templates/{}", controller.name(), name(&template));
            assert!(rendered.contains(&source), "{} is left out of {}", name(&template), values.display());
        }
    }
    Ok(())
}

/// Without these options, Argo CD prunes the definitions, and with them all of their objects.
#[tokio::test]
async fn what_a_user_or_a_parent_chart_sets_keeps_the_definitions_and_breaks_nothing() -> Result<()> {
    const OPTIONS: &str = "argocd.argoproj.io/sync-options";
    let values = std::env::temp_dir().join(format!("catena-values-{}.yaml", std::process::id()));
    for (given, expected) in [
        (json!({}), "Prune=false,Delete=false"),
        (json!({OPTIONS: "ServerSideApply=true"}), "ServerSideApply=true,Prune=false,Delete=false"),
        (json!({OPTIONS: "PruneLast=true, Prune=confirm"}), "PruneLast=true, Prune=confirm,Delete=false"),
        (Value::Null, "Prune=false,Delete=false"),
    ] {
        let set =
            json!({"enabled": true, "commonLabels": null, "podLabels": null, "crds": {"annotations": given}});
        fs::write(&values, set.to_string())?;
        for controller in [DEPLOYMENTS, REPLICA_SETS] {
            let rendered = render(controller, &values, "v1.36.0").await?;
            let (is, kept) = (format!("{OPTIONS}: {expected}"), "helm.sh/resource-policy: keep");
            let definitions = rendered.matches("kind: CustomResourceDefinition\n").count();
            let [options, keeps] = [is.as_str(), kept].map(|text| rendered.matches(text).count());
            ensure!(definitions > 0 && options == definitions && keeps == definitions, "{given}: {rendered}");
        }
    }
    fs::remove_file(&values)?;
    Ok(())
}
