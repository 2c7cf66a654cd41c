//! Checks that the generated files of the charts are up to date, that every chart lints and renders with its defaults, its CI
//! values and the local values, and that the notes after an installation are true for the values: a values file in `ci` lists
//! what they must say, in comments of the form `# notes: TEXT`, and what they must not say (`# not in the notes: TEXT`).

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use local_cluster::{Interrupt, Tool, Toolchain, files, forget_other_clusters, output};
use serde_json::Value;

use crate::{
    charts::{self, Chart, NAMESPACE},
    commands, workspace,
};

const EXPECTED: &str = "# notes: ";
const UNEXPECTED: &str = "# not in the notes: ";

/// Checks all charts; every failure is reported, not only the first.
pub async fn run(interrupt: &Interrupt) -> Result<()> {
    let toolchain = interrupt.or(Toolchain::clients()).await?;
    let program = toolchain.path(Tool::Helm)?;
    let charts = charts::all();
    if charts.is_empty() {
        bail!("there is no chart in {}", workspace::charts().display());
    }
    let mut failed = Vec::new();
    let mut report = |what: String, result: Result<()>| match result {
        Ok(()) => println!("✓ {what}"),
        Err(error) => {
            println!("✗ {what}: {error:#}");
            failed.push(what);
        }
    };
    report("generated files".to_owned(), commands::charts::run(true));
    for chart in &charts {
        let lint = interrupt.run(&mut helm(program, &["lint", "--strict", "--quiet"], chart, None)).await;
        if interrupt.came() {
            return lint;
        }
        report(format!("lint {}", chart.name), lint);
        report(format!("template {}", chart.name), render(program, chart, None));
        for values in chart.ci_values().into_iter().chain([workspace::local_values()]) {
            let what = format!("template {} with {}", chart.name, name(&values));
            report(what, render(program, chart, Some(&values)));
        }
        for values in chart.ci_values() {
            let what = format!("notes of {} with {}", chart.name, name(&values));
            let notes = notes(program, chart, &values);
            report(what, notes.and_then(|notes| compare(&notes, &files::read(&values)?)));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join(", "));
    Ok(())
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Renders a chart. A map that has a key twice is refused, as by those who process what is rendered, such as Flux.
fn render(program: &Path, chart: &Chart, values: Option<&Path>) -> Result<()> {
    let rendered = output(&mut helm(program, &["template", &chart.name], chart, values))?;
    let read = serde_saphyr::from_multiple::<Value>(&rendered);
    read.map(drop).map_err(|error| anyhow!("{}", error.without_snippet()))
}

fn helm(program: &Path, subcommand: &[&str], chart: &Chart, values: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    forget_other_clusters(&mut command)
        .args(subcommand)
        .arg(&chart.directory)
        .args(["--namespace", NAMESPACE])
        .args(values.iter().flat_map(|values| ["--values".as_ref(), values.as_os_str()]))
        .stdin(Stdio::null());
    command
}

fn notes(program: &Path, chart: &Chart, values: &Path) -> Result<String> {
    let install: [&str; 3] = ["install", "--dry-run=client", &chart.name];
    let said = output(&mut helm(program, &install, chart, Some(values)))?;
    let (_, notes) = said.split_once("\nNOTES:\n").context("helm printed no notes")?;
    Ok(notes.to_owned())
}

/// Compares notes with the comments of a values file.
fn compare(notes: &str, values: &str) -> Result<()> {
    ensure!(
        values.contains(EXPECTED),
        "the values file has no line `{EXPECTED}TEXT`; add what the notes must say"
    );
    for line in values.lines() {
        if let Some(expected) = line.strip_prefix(EXPECTED) {
            ensure!(notes.contains(expected), "the notes do not say {expected:?}: {notes}");
        }
        if let Some(unexpected) = line.strip_prefix(UNEXPECTED) {
            ensure!(!notes.contains(unexpected), "the notes say {unexpected:?}: {notes}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_held_against_the_comments_of_the_values() {
        let values = "# notes: It protects nothing\n# not in the notes: is held\nkinds: {}\n";
        compare("\nIt protects nothing yet.\n", values).unwrap();
        for wrong in ["", "It protects nothing. It is held."] {
            compare(wrong, values).unwrap_err();
        }
        compare("It protects nothing", "kinds: {}\n").unwrap_err();
    }
}
