//! The program that brought the cluster up, started again from a copy of its own file: as the cluster's supervisor, and
//! as the process that becomes each of its children, so that none outlives it.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs::OpenOptions,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tokio::process::Child;

/// First argument of a supervisor; the cluster's name follows.
pub const SUPERVISE: &str = "local-cluster-supervise";
/// First argument of a process that becomes a child; the parent's pid, the program and its arguments follow.
pub const BECOME_CHILD: &str = "local-cluster-become-child";

/// The file of this program, as long as it runs; the path that it was started from has another program, or none, after
/// a build.
#[must_use]
pub fn file() -> PathBuf {
    format!("/proc/{}/exe", std::process::id()).into()
}

/// A command that supervises the cluster of this name.
pub fn supervisor(copy: &Path, cluster: &str) -> Command {
    let mut command = Command::new(copy);
    command.args([SUPERVISE, cluster]);
    command
}

/// A command that runs `program` through [`become_child`].
///
/// The kernel sends the death signal when the *thread* that started the child ends: spawn it from a thread
/// that lives as long as the supervisor. The supervisor's runtime has just one thread, the main one.
pub fn child(copy: &Path, program: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(copy);
    command
        .arg(BECOME_CHILD)
        .arg(std::process::id().to_string())
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        // Proxies and the like of the user's shell must not affect the cluster.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Starts a command of [`child`]; its output is appended to a log.
pub fn spawn(mut command: Command, program: &Path, log: &Path) -> Result<Child> {
    let file = OpenOptions::new().create(true).append(true).open(log);
    let file = file.with_context(|| format!("could not open the log {}", log.display()))?;
    command.stdout(file.try_clone()?).stderr(file);
    let child = tokio::process::Command::from(command).spawn();
    child.with_context(|| format!("could not start {}", program.display()))
}

/// Asks the kernel to kill this process with its parent, then turns into `program`: the pid stays the same.
pub fn become_child(parent: i32, program: &Path, arguments: &[OsString]) -> Result<Infallible> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("could not set the parent-death signal")?;
    // The parent may have died before the call above: then no signal will ever come.
    if getppid() != Pid::from_raw(parent) {
        bail!("the supervisor has ended meanwhile: not starting {}", program.display());
    }
    Err(Command::new(program).args(arguments).exec())
        .with_context(|| format!("could not run {}", program.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::again;

    #[test]
    fn a_program_whose_file_a_build_has_replaced_is_started_again() {
        if again::is_here() {
            fs::remove_file(std::env::current_exe().unwrap()).unwrap();
            assert!(Command::new(file()).arg("--list").stdout(Stdio::null()).status().unwrap().success());
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("copy");
        // Another process writes it: see `again::program`.
        let own = std::env::current_exe().unwrap();
        assert!(Command::new("cp").arg(own).arg(&copy).status().unwrap().success());
        again::passes(
            &copy,
            "own_program::tests::a_program_whose_file_a_build_has_replaced_is_started_again",
            &[],
        );
    }
}
