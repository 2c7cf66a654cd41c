//! The current cluster and its access.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use local_cluster::{Access, Interrupt, Tool, Toolchain, cache_directory, files, output, write_kubeconfig};
use serde_json::Value;

use crate::{
    charts,
    cluster::{Cluster, temporary_name},
};

/// The placeholder for a chart's name in the values of all charts.
const CHART: &str = "${CHART}";

/// A copy of a context of the user's kubeconfig.
pub struct Context {
    pub name: String,
    pub server: String,
    pub cluster: Cluster,
    directory: PathBuf,
}

impl Context {
    /// Copies the current context. Only the copy is used from then on, so that a change of the context while the suite
    /// runs does not change the cluster.
    pub async fn current(values: Option<&Path>, interrupt: &Interrupt) -> Result<Self> {
        let clients = interrupt.or(Toolchain::clients()).await?;
        let kubectl = clients.path(Tool::Kubectl)?.clone();
        let view = ["config", "view", "--minify", "--flatten", "--raw", "--output=json"];
        let config = said(Command::new(&kubectl).args(view)).context(
            "there is no current context: `kubectl config get-contexts` lists those that there are",
        )?;
        let config: Value = serde_json::from_str(&config).context("could not understand the kubeconfig")?;
        let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned);
        let name = text("/current-context").context("the kubeconfig has no current context")?;
        let server = text("/clusters/0/cluster/server");
        let server = server.with_context(|| format!("the context {name} has no server"))?;

        let directory = cache_directory()?.join("current").join(temporary_name("e2e"));
        let access = Access {
            kubeconfig: directory.join("kubeconfig"),
            logs: directory.join("logs"),
            audit_log: None,
            kubectl,
            helm: clients.path(Tool::Helm)?.clone(),
        };
        let cluster = Cluster { access, values: directory.join("values") };
        // From here on, the written files are removed on any failure.
        let context = Self { name, server, cluster, directory };
        for directory in [&context.cluster.access.logs, &context.cluster.values] {
            files::create_directory(directory)?;
        }
        write_kubeconfig(&context.cluster.access.kubeconfig, &config)?;
        write_values(&context.cluster, values)?;
        Ok(context)
    }

    /// Asks kubectl.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        said(self.cluster.access.kubectl().args(arguments))
    }

    /// Asks helm.
    pub fn helm(&self, arguments: &[&str]) -> Result<String> {
        said(self.cluster.access.helm().args(arguments))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // It holds a copy of the credentials.
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// Writes a file for each chart, from the one of the user.
fn write_values(cluster: &Cluster, given: Option<&Path>) -> Result<()> {
    let text = given.map(files::read).transpose()?.unwrap_or_default();
    for chart in charts::all() {
        files::write(&cluster.values_of(&chart.name), text.replace(CHART, &chart.name))?;
    }
    Ok(())
}

/// The output of a program. Ctrl-C does not reach it, because it may be cleaning up after the suite.
fn said(command: &mut Command) -> Result<String> {
    output(command.process_group(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chart_gets_the_values_with_its_own_name() {
        let directory = tempfile::tempdir().unwrap();
        let given = directory.path().join("given.yaml");
        fs::write(&given, "image: {repository: registry.example.com/catena/${CHART}}").unwrap();
        let access = Access {
            kubeconfig: directory.path().join("kubeconfig"),
            logs: directory.path().to_owned(),
            audit_log: None,
            kubectl: "kubectl".into(),
            helm: "helm".into(),
        };
        let cluster = Cluster { access, values: directory.path().to_owned() };
        write_values(&cluster, Some(&given)).unwrap();
        for chart in ["backup-controller", "command-binder"] {
            let text = fs::read_to_string(cluster.values_of(chart)).unwrap();
            assert_eq!(text, format!("image: {{repository: registry.example.com/catena/{chart}}}"));
        }
    }
}
