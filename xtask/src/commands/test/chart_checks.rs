//! Checks that the generated files of the charts are up to date, and that every chart lints and renders with its
//! defaults, its CI values and the local values, with notes that are true for them.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Result, bail};
use local_cluster::{Interrupt, Tool, Toolchain, forget_other_clusters};

use super::chart_notes;
use crate::{
    charts::{self, Chart, NAMESPACE},
    commands, workspace,
};

/// Checks all charts; every failure is reported, not only the first.
pub async fn run(interrupt: &Interrupt) -> Result<()> {
    let toolchain = interrupt.or(Toolchain::clients()).await?;
    let helm = toolchain.path(Tool::Helm)?;
    let charts = charts::all();
    if charts.is_empty() {
        bail!("there is no chart in {}", workspace::charts().display());
    }
    let mut failed = Vec::new();
    if let Err(error) = commands::charts::run(true) {
        println!("✗ {error:#}");
        failed.push("generated files".to_owned());
    }
    for chart in &charts {
        for (what, mut command) in checks(helm, chart) {
            let result = interrupt.run(&mut command).await;
            if interrupt.came() {
                return result;
            }
            match result {
                Ok(()) => println!("✓ {what}"),
                Err(error) => {
                    println!("✗ {what}: {error:#}");
                    failed.push(what);
                }
            }
        }
        for values in chart.ci_values() {
            let file = values.file_name().unwrap_or_default().to_string_lossy();
            let what = format!("notes of {} with {file}", chart.name);
            match chart_notes::check(helm, chart, &values) {
                Ok(()) => println!("✓ {what}"),
                Err(error) => {
                    println!("✗ {what}: {error:#}");
                    failed.push(what);
                }
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{}", failed.join(", "))
}

fn checks(helm: &Path, chart: &Chart) -> Vec<(String, Command)> {
    let helm_with = |subcommand: &[&str], values: Option<&Path>| {
        let mut command = Command::new(helm);
        forget_other_clusters(&mut command)
            .args(subcommand)
            .arg(&chart.directory)
            .args(["--namespace", NAMESPACE]);
        if let Some(values) = values {
            command.arg("--values").arg(values);
        }
        // The rendered objects are irrelevant here; mistakes are on standard error.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    let template: [&str; 2] = ["template", &chart.name];
    let mut checks = Vec::new();
    let mut lint = helm_with(&["lint", "--strict", "--quiet"], None);
    lint.stdout(Stdio::inherit());
    checks.push((format!("lint {}", chart.name), lint));
    checks.push((format!("template {}", chart.name), helm_with(&template, None)));
    for values in chart.ci_values().into_iter().chain([workspace::local_values()]) {
        let file = values.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let command = helm_with(&template, Some(&values));
        checks.push((format!("template {} with {file}", chart.name), command));
    }
    checks
}
