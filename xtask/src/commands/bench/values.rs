//! The charts with what the benchmark needs of them.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Options, pod, scenarios::backup_values};
use crate::charts::{self, Chart};

/// All charts; their additional values are written to files in `directory`.
pub fn charts(directory: &Path, options: &Options) -> Result<Vec<Chart>> {
    let mut charts = charts::all();
    for chart in &mut charts {
        let mut values = values_of(&chart.name, options);
        if !options.env.is_empty() {
            let variable = |(name, value): &(String, String)| json!({"name": name, "value": value});
            values["env"] = options.env.iter().map(variable).collect();
        }
        if values == json!({}) {
            continue;
        }
        let path = directory.join(format!("bench-{}.yaml", chart.name));
        // JSON is YAML.
        fs::write(&path, values.to_string())
            .with_context(|| format!("could not write {}", path.display()))?;
        chart.values.push(path);
    }
    Ok(charts)
}

fn values_of(chart: &str, options: &Options) -> Value {
    match chart {
        "backup-controller" => backup_values(),
        "basic-deployment-controller" if options.without_events => json!({"events": {"normal": false}}),
        "basic-replicaset-controller" if options.pod_bytes > 0 => {
            json!({"templates": {"default": pod::jinja(options.pod_bytes)}})
        }
        _ => json!({}),
    }
}
