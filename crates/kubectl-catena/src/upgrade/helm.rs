//! Renders a chart with the user's helm.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    process::Stdio,
};

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// The values for a chart.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Charts {
    /// Values of the charts, as for helm; can be given several times
    #[arg(long = "values", value_name = "FILE")]
    values: Vec<std::path::PathBuf>,
    /// A value of the charts, as for helm; can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Whether a path is a chart: a folder with a Chart.yaml, or an archive.
pub fn is_chart(path: &Path) -> bool {
    let extension = |path: &Path| path.extension().map(OsStr::to_ascii_lowercase).unwrap_or_default();
    let is_packed =
        extension(path) == "gz" && path.file_stem().is_some_and(|stem| extension(Path::new(stem)) == "tar");
    path.join("Chart.yaml").is_file() || extension(path) == "tgz" || is_packed
}

impl Charts {
    /// The manifests of a chart, with those of its `crds` folder.
    pub async fn render(&self, chart: &Path, namespace: &str, kubernetes: &str) -> Result<String> {
        let helm = std::env::var_os("CATENA_HELM").unwrap_or_else(|| OsString::from("helm"));
        let mut command = Command::new(&helm);
        command.args(["template", "upgrade-check"]).arg(chart).args(["--include-crds", "--is-upgrade"]);
        command.args(["--namespace", namespace, "--kube-version", kubernetes]);
        for file in &self.values {
            command.arg("--values").arg(file);
        }
        for value in &self.set {
            command.arg("--set").arg(value);
        }
        let rendered = command.stdin(Stdio::null()).output().await.with_context(|| {
            format!(
                "the chart {} is rendered by helm, and {} cannot be started: install helm, or set CATENA_HELM to its path",
                chart.display(),
                helm.to_string_lossy()
            )
        })?;
        if !rendered.status.success() {
            let said = String::from_utf8_lossy(&rendered.stderr);
            bail!("helm cannot render the chart {}: {}", chart.display(), said.trim());
        }
        String::from_utf8(rendered.stdout)
            .with_context(|| format!("the chart {} is no text", chart.display()))
    }
}
