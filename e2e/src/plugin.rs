use std::{path::Path, process::Stdio};

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::process::Command;

use crate::cluster::path_from;

/// What kubectl-catena printed.
#[derive(Debug)]
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Standard output as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {self:?}"))
    }
}

/// Runs kubectl-catena as a user does, in a namespace.
pub async fn catena(namespace: &str, arguments: &[&str]) -> Result<Said> {
    catena_as(&path_from("KUBECONFIG")?, &[&["--namespace", namespace], arguments].concat()).await
}

/// Runs kubectl-catena with another kubeconfig.
pub async fn catena_as(kubeconfig: &Path, arguments: &[&str]) -> Result<Said> {
    let output = Command::new(path_from("CATENA_PLUGIN")?)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .output()
        .await
        .context("could not start kubectl-catena")?;
    Ok(Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
