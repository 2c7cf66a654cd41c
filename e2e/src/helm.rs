use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::{cluster::path_from, system::NAMESPACE};

/// Runs helm in the namespace of the charts, and returns its output.
pub async fn helm(arguments: &[&str]) -> Result<String> {
    let output = Command::new(path_from("CATENA_HELM")?)
        .args(arguments)
        .args(["--namespace", NAMESPACE])
        .stdin(Stdio::null())
        .output()
        .await
        .context("could not start helm")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "helm {}: {error}", arguments.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
