//! The charts with what the benchmark needs of them.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::json;

use super::pod;
use crate::charts::{self, Chart};

/// All charts; the additional values of the one that creates pods are written to a file in `directory`.
pub fn charts(directory: &Path, pod_bytes: usize) -> Result<Vec<Chart>> {
    let mut charts = charts::all();
    if pod_bytes > 0 {
        let path = directory.join("bench-values.yaml");
        // JSON is YAML.
        let values = json!({"templates": {"default": pod::jinja(pod_bytes)}}).to_string();
        fs::write(&path, values).with_context(|| format!("could not write {}", path.display()))?;
        let with_pods = charts.iter_mut().find(|chart| chart.name == "basic-replicaset-controller");
        with_pods.context("there is no basic-replicaset-controller")?.values.push(path);
    }
    Ok(charts)
}
