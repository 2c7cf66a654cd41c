//! Starting processes that cannot outlive the supervisor.

use std::{
    convert::Infallible,
    ffi::OsString,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The hidden subcommand of this program that becomes the child.
pub const SUBCOMMAND: &str = "exec-child";

/// A command that runs `program` through [`become_child`].
///
/// The kernel sends the death signal when the *thread* that started the child ends: spawn it from a thread
/// that lives as long as the supervisor. The supervisor's runtime has just one thread, the main one.
pub fn command(supervisor_binary: &Path, program: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(supervisor_binary);
    command
        .arg(SUBCOMMAND)
        .arg(std::process::id().to_string())
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        // Proxies and the like of the user's shell have no place in the cluster.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
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
