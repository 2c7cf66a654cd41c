//! Checks that the notes after an installation are true for the values: a values file in `ci` lists what they must say,
//! in comments of the form `# notes: TEXT`, and what they must not say (`# not in the notes: TEXT`).

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use local_cluster::forget_other_clusters;

use crate::charts::{Chart, NAMESPACE};

const EXPECTED: &str = "# notes: ";
const UNEXPECTED: &str = "# not in the notes: ";

/// Renders the notes of a chart with a values file, and checks them.
pub fn check(helm: &Path, chart: &Chart, values: &Path) -> Result<()> {
    let text = fs::read_to_string(values)?;
    compare(&notes(helm, chart, values)?, &text)
}

fn notes(helm: &Path, chart: &Chart, values: &Path) -> Result<String> {
    let output = forget_other_clusters(&mut Command::new(helm))
        .args(["install", "--dry-run=client", &chart.name])
        .arg(&chart.directory)
        .args(["--namespace", NAMESPACE, "--values"])
        .arg(values)
        .stdin(Stdio::null())
        .output()
        .context("could not start helm")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", error.trim());
    let output = String::from_utf8_lossy(&output.stdout);
    let (_, notes) = output.split_once("\nNOTES:\n").context("helm printed no notes")?;
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
