use std::{
    mem::ManuallyDrop,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    BACKUPS, BINDER, Cluster, Controller, cluster::path_from, run::output_of, system::NAMESPACE,
    until_nothing_is_protected,
};

/// Runs helm in the namespace of the charts, and returns its output.
pub async fn helm(arguments: &[&str]) -> Result<String> {
    let mut helm = Command::new(path_from("CATENA_HELM")?);
    helm.args(arguments).args(["--namespace", NAMESPACE]);
    output_of(helm.into(), "").await
}

/// Installs a second release of a chart in another namespace, as a user with their own rights.
pub async fn install_as(user: &str, namespace: &str, controller: Controller, values: &Value) -> Result<()> {
    let mut helm = Command::new(path_from("CATENA_HELM")?);
    helm.args(["install", controller.name()]).arg(controller.chart()?);
    helm.args(["--namespace", namespace, "--kube-as-user", user, "--values", "-"]);
    output_of(helm.into(), &values.to_string()).await?;
    Ok(())
}

/// A controller's release, changed or uninstalled until this is dropped.
pub struct Release {
    controller: Controller,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    revision: String,
}

impl Release {
    /// Upgrades a release with more values. Others see it too, so that the test has to be
    /// [changing](Cluster::changing) the controller.
    pub async fn upgrade(cluster: &Cluster, controller: Controller, values: &Value) -> Result<Self> {
        let release = Self::to_change(cluster, controller).await?;
        release.change(values).await?;
        Ok(release)
    }

    /// Upgrades a release with more values, which stay.
    pub async fn set(controller: Controller, values: &Value) -> Result<()> {
        ManuallyDrop::new(Self { controller }).change(values).await
    }

    /// Replaces the chart of a release, for example by an earlier one, until this is dropped.
    pub async fn of_chart(
        cluster: &Cluster,
        controller: Controller,
        chart: &Path,
        values: &Value,
    ) -> Result<Self> {
        let release = Self::to_change(cluster, controller).await?;
        release.replace_chart(chart, values).await?;
        Ok(release)
    }

    async fn to_change(cluster: &Cluster, controller: Controller) -> Result<Self> {
        cluster.ensure_it_may_change(controller)?;
        if controller == BACKUPS {
            // With other values, objects that wait for their backup would never be released.
            until_nothing_is_protected(cluster).await;
        }
        Ok(Self { controller })
    }

    /// Upgrades it again, to the chart's present state, with these values instead.
    pub async fn change(&self, values: &Value) -> Result<()> {
        self.replace_chart(&self.controller.chart()?, values).await
    }

    /// Rolls it back to the state before its last upgrade.
    pub async fn rollback(&self) -> Result<()> {
        helm(&["rollback", self.controller.name()]).await?;
        Ok(())
    }

    /// Upgrades it again, to another chart, with these values instead.
    pub async fn replace_chart(&self, chart: &Path, values: &Value) -> Result<()> {
        let mut helm = upgrade(self.controller, chart)?;
        helm.args(["--values", "-"]);
        output_of(helm.into(), &values.to_string()).await?;
        Ok(())
    }

    /// Uninstalls a release, like a user; it is installed again when the result is dropped.
    pub async fn uninstall(cluster: &Cluster, controller: Controller) -> Result<Self> {
        cluster.ensure_it_may_change(controller)?;
        let uninstalled = Self { controller };
        Self::try_uninstall(cluster, controller).await?;
        Ok(uninstalled)
    }

    /// Uninstalls a release; if that fails, it remains unchanged.
    pub async fn try_uninstall(cluster: &Cluster, controller: Controller) -> Result<()> {
        cluster.ensure_it_may_change(controller)?;
        helm(&["uninstall", controller.name(), "--wait", "--timeout", "240s"]).await?;
        Ok(())
    }

    /// The values that a release was given.
    pub async fn values(controller: Controller) -> Result<Value> {
        let values = helm(&["get", "values", controller.name(), "--output", "json"]).await?;
        serde_json::from_str(&values).context("helm get values")
    }

    /// The number of a release's last upgrade.
    pub async fn revision(controller: Controller) -> Result<u64> {
        let listed = helm(&["list", "--output", "json"]).await?;
        let releases: Vec<Listed> = serde_json::from_str(&listed).context("helm list")?;
        let found = releases.iter().find(|release| release.name == controller.name());
        Ok(found.with_context(|| format!("no release {}", controller.name()))?.revision.parse()?)
    }

    /// Restores the values that the suite was started with.
    pub async fn restore(self) -> Result<()> {
        // Dropping it would do the same, and could not fail.
        ManuallyDrop::new(self).change(&json!({})).await
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        let chart = self.controller.chart();
        let ended = chart
            .and_then(|chart| upgrade(self.controller, &chart))
            .and_then(|mut helm| Ok(helm.stdout(Stdio::null()).status()?))
            .map(|status| status.success());
        if !matches!(ended, Ok(true)) {
            eprintln!("clean-up failed: {} keeps the values of a test: {ended:?}", self.controller.name());
        }
    }
}

fn upgrade(controller: Controller, chart: &Path) -> Result<Command> {
    let mut values = path_from("CATENA_VALUES")?;
    // A file for all charts, or a directory with a file for each.
    if values.is_dir() {
        values.push(format!("{}.yaml", controller.name()));
    }
    let mut helm = Command::new(path_from("CATENA_HELM")?);
    // The API server validates all objects; a validation by helm before that takes half of an upgrade's time. Without
    // values, helm would reuse those of the last upgrade.
    helm.args(["upgrade", "--install", "--reset-values", controller.name()])
        .arg(chart)
        .args(["--disable-openapi-validation", "--namespace", NAMESPACE, "--values"])
        .arg(values);
    let of_the_suite = path_from("CATENA_SUITE_VALUES")?.join(format!("{}.yaml", controller.name()));
    if of_the_suite.is_file() {
        helm.arg("--values").arg(of_the_suite);
    }
    Ok(helm)
}

/// The shipped kinds of commands, without the policies that ask for a right on the target.
pub fn kinds_without_admission() -> Result<Value> {
    let mut kinds = shipped_values(BINDER)?["kinds"].take();
    for kind in kinds.as_array_mut().context("the chart has no kinds")? {
        kind["admission"] = json!({"enabled": false});
    }
    Ok(kinds)
}

fn shipped_values(controller: Controller) -> Result<Value> {
    let path = controller.chart()?.join("values.yaml");
    Ok(serde_saphyr::from_str(&std::fs::read_to_string(path)?)?)
}

/// The shipped template `default` of a controller's chart.
pub fn shipped_template(controller: Controller) -> Result<String> {
    let values = shipped_values(controller)?;
    let template = values.pointer("/templates/default").and_then(Value::as_str);
    Ok(template.context("the chart has no template default")?.to_owned())
}
