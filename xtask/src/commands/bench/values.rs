//! The charts with what the benchmark needs of them.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{pod, scenarios::backup_values};
use crate::charts::{self, Chart};

/// All charts; their additional values are written to files in `directory`.
pub fn charts(directory: &Path, pod_bytes: usize) -> Result<Vec<Chart>> {
    let mut charts = charts::all();
    for chart in &mut charts {
        let Some(values) = values_of(&chart.name, pod_bytes) else { continue };
        let path = directory.join(format!("bench-{}.yaml", chart.name));
        // JSON is YAML.
        fs::write(&path, values.to_string())
            .with_context(|| format!("could not write {}", path.display()))?;
        chart.values.push(path);
    }
    Ok(charts)
}

fn values_of(chart: &str, pod_bytes: usize) -> Option<Value> {
    match chart {
        "backup-controller" => Some(backup_values()),
        "basic-replicaset-controller" if pod_bytes > 0 => {
            Some(json!({"templates": {"default": pod::jinja(pod_bytes)}}))
        }
        _ => None,
    }
}
