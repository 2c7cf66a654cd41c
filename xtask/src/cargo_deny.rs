//! cargo-deny in one version, kept outside the checkout like the programs of the local cluster.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use local_cluster::{Interrupt, Step, cache_directory};

use crate::cargo;

/// Which rules deny.toml may use, and what they mean, depends on it.
const VERSION: &str = "0.20.2";

/// A run of cargo-deny in the checkout; it is installed first where that version is missing.
///
/// # Errors
/// When it cannot be installed.
pub async fn command(interrupt: &Interrupt) -> Result<Command> {
    let mut at_hand = cargo::command();
    at_hand.arg("deny");
    if is_wanted(&mut at_hand) {
        let mut command = cargo::command();
        command.arg("deny");
        return Ok(command);
    }
    let program = install(&cache_directory()?.join("tools"), cargo::command(), interrupt).await?;
    let mut command = Command::new(program);
    command.current_dir(crate::workspace::root());
    Ok(command)
}

fn is_wanted(deny: &mut Command) -> bool {
    let output = deny.arg("--version").stdin(Stdio::null()).output();
    output.is_ok_and(|output| is_version(&String::from_utf8_lossy(&output.stdout)))
}

fn is_version(said: &str) -> bool {
    said.split_whitespace().eq(["cargo-deny", VERSION])
}

/// Installs it with that cargo, unless it is there already, and gives its path.
async fn install(tools: &Path, mut cargo: Command, interrupt: &Interrupt) -> Result<PathBuf> {
    let root = tools.join(format!("cargo-deny-{VERSION}"));
    let program = root.join("bin/cargo-deny");
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&root).with_context(|| format!("could not create {}", root.display()))?;
    let log = root.join("install.log");
    let output = File::create(&log).with_context(|| format!("could not create {}", log.display()))?;
    // It runs for a second: that is not worth the time of an optimised build.
    cargo.args(["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--root"]).arg(&root);
    // Of the checkout, not of this.
    cargo.current_dir(&root).env_remove("CARGO_TARGET_DIR");
    cargo.stdout(output.try_clone()?).stderr(output);
    let step = Step::start(format!("installing cargo-deny {VERSION}, once (2–5 min)"));
    if let Err(error) = interrupt.run(&mut cargo).await {
        bail!("{error:#}: {}", last_words(&log));
    }
    step.done("");
    Ok(program)
}

/// What was said last that says something.
fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Something that behaves like cargo: it runs these words of a shell, with the arguments as `$1`, `$2`, ….
    fn cargo_that(does: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", does, "cargo"]);
        shell
    }

    #[tokio::test]
    async fn what_is_missing_is_installed_once_in_the_pinned_version() {
        let tools = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::listen().unwrap();
        let installs = r#"[ "$1 $2 $3 $4" = "install cargo-deny --version 0.20.2" ] && mkdir "$8/bin" && echo > "$8/bin/cargo-deny""#;
        let program = install(tools.path(), cargo_that(installs), &interrupt).await.unwrap();
        assert!(program.is_file());
        let again = install(tools.path(), cargo_that("exit 1"), &interrupt).await.unwrap();
        assert_eq!(again, program);
    }

    #[tokio::test]
    async fn a_failed_installation_is_told_in_cargos_words() {
        let tools = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::listen().unwrap();
        let fails = cargo_that("echo 'could not resolve host' >&2; exit 101");
        let error = install(tools.path(), fails, &interrupt).await.unwrap_err().to_string();
        assert!(error.contains("could not resolve host"), "{error}");
    }

    #[test]
    fn another_version_is_not_taken() {
        assert!(is_version("cargo-deny 0.20.2\n"));
        assert!(!is_version("cargo-deny 0.20.1\n") && !is_version(""));
    }
}
