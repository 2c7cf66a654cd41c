//! Every chart lints and renders, with its defaults, its CI values and the local values; and the charts are alike.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Result, bail};

use crate::{
    charts::{self, Chart, NAMESPACE},
    interrupt::Interrupt,
    toolchain::{Tool, Toolchain},
    workspace,
};

/// What differs between the charts in their name alone: who knows one of them knows all.
const ALIKE: [&str; 9] = [
    ".helmignore",
    "templates/deployment.yaml",
    "templates/lease.yaml",
    "templates/networkpolicy.yaml",
    "templates/poddisruptionbudget.yaml",
    "templates/service.yaml",
    "templates/serviceaccount.yaml",
    "templates/servicemonitor.yaml",
    "templates/test.yaml",
];

/// Checks all charts; every failure is reported, not only the first.
pub async fn run(interrupt: &Interrupt) -> Result<()> {
    let toolchain = Toolchain::provide()?;
    let helm = toolchain.path(Tool::Helm)?;
    let charts = charts::all();
    if charts.is_empty() {
        bail!("there is no chart in {}", workspace::charts().display());
    }
    let mut failed = Vec::new();
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
    }
    for (file, others) in strays(&charts) {
        println!("✗ {file} of {others} is not what {} has", charts[0].name);
        failed.push(format!("{file} of {others}"));
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{}", failed.join(", "))
}

fn checks(helm: &Path, chart: &Chart) -> Vec<(String, Command)> {
    let helm_with = |subcommand: &[&str], values: Option<&Path>| {
        let mut command = Command::new(helm);
        command.args(subcommand).arg(&chart.directory).args(["--namespace", NAMESPACE]);
        if let Some(values) = values {
            command.arg("--values").arg(values);
        }
        // What is rendered is of no interest here; what is wrong is on standard error.
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

/// The files that are to be alike and are not, with the charts that differ from the first.
fn strays(charts: &[Chart]) -> Vec<(&'static str, String)> {
    let differing = |file: &'static str| {
        let text = |chart: &Chart| {
            fs::read_to_string(chart.directory.join(file)).map(|text| text.replace(&chart.name, "NAME")).ok()
        };
        let first = charts.first().and_then(text);
        let others = charts.iter().filter(|chart| text(chart) != first).map(|chart| chart.name.as_str());
        (file, others.collect::<Vec<_>>().join(", "))
    };
    ALIKE.into_iter().map(differing).filter(|(_, others)| !others.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_differ_in_their_name_and_nothing_else_that_is_shared() {
        let directory = tempfile::tempdir().unwrap();
        let chart = |name: &str, text: &str| {
            let directory = directory.path().join(name);
            fs::create_dir_all(directory.join("templates")).unwrap();
            for file in ALIKE {
                fs::write(directory.join(file), format!("{name}: {text}")).unwrap();
            }
            Chart { name: name.to_owned(), directory, values: Vec::new() }
        };
        assert_eq!(strays(&[chart("one", "same"), chart("two", "same")]), []);
        let third = chart("three", "same");
        fs::remove_file(third.directory.join("templates/test.yaml")).unwrap();
        let found = strays(&[chart("one", "same"), chart("two", "same"), third]);
        assert_eq!(found, [("templates/test.yaml", "three".to_owned())]);
    }
}
