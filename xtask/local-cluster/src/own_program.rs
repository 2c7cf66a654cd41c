//! The program that brought the cluster up, started again from a copy of its own file, in a role that its arguments name: as the
//! cluster's supervisor, and as the process that becomes each of its children, so that none outlives it.

use std::{
    ffi::OsString,
    fs::OpenOptions,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tokio::process::Child;

use crate::{explain::explain, lifecycle::supervisor::supervise, local_cluster::LocalCluster};

/// First argument of a supervisor; the cluster's name follows.
const SUPERVISE: &str = "local-cluster-supervise";
/// First argument of a process that becomes a child; the parent's pid, the program and its arguments follow.
const BECOME_CHILD: &str = "local-cluster-become-child";

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

/// A command for a process that becomes `program`.
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

/// What this program was started again for.
#[derive(Debug, PartialEq, Eq)]
enum Role {
    Supervisor { cluster: String },
    Child { parent: i32, program: PathBuf, arguments: Vec<OsString> },
}

/// Plays the role in the arguments of this process, if there is one, to its end. Call it at the very start of `main`, on the
/// main thread.
#[must_use]
pub fn play_role() -> Option<ExitCode> {
    Some(match Role::read(std::env::args_os().skip(1))?.play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", explain(&error));
            ExitCode::FAILURE
        }
    })
}

impl Role {
    fn read(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        match arguments.next()?.to_str()? {
            SUPERVISE => Some(Self::Supervisor { cluster: arguments.next()?.into_string().ok()? }),
            BECOME_CHILD => Some(Self::Child {
                parent: arguments.next()?.to_str()?.parse().ok()?,
                program: arguments.next()?.into(),
                arguments: arguments.collect(),
            }),
            _ => None,
        }
    }

    fn play(self) -> Result<()> {
        match self {
            Self::Supervisor { cluster } => {
                // One thread: children get a death signal when the thread that started them ends.
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .context("could not start the async runtime")?;
                runtime.block_on(supervise(LocalCluster::named(&cluster)?))
            }
            Self::Child { parent, program, arguments } => {
                // Then this turns into the program: the pid stays the same.
                let signal = set_parent_process_death_signal(Some(Signal::KILL));
                signal.context("could not set the parent-death signal")?;
                // The parent may have died before the call above: then no signal will ever come.
                ensure!(
                    getppid() == Pid::from_raw(parent),
                    "the supervisor has ended meanwhile: not starting {}",
                    program.display()
                );
                Err(Command::new(&program).args(arguments).exec())
                    .with_context(|| format!("could not run {}", program.display()))
            }
        }
    }
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

    fn role_of(command: &Command) -> Option<Role> {
        Role::read(command.get_args().map(OsString::from))
    }

    #[test]
    fn a_program_that_is_started_again_finds_its_role_in_its_arguments() {
        let copy = Path::new("/cluster/supervisor");
        let supervisor = role_of(&supervisor(copy, "default"));
        assert_eq!(supervisor, Some(Role::Supervisor { cluster: "default".into() }));
        let arguments = ["--name=local", "--", "--help"];
        let child = role_of(&child(copy, Path::new("/tools/etcd"), &arguments.map(String::from)));
        let expected = Role::Child {
            parent: std::process::id().cast_signed(),
            program: "/tools/etcd".into(),
            arguments: arguments.map(OsString::from).into(),
        };
        assert_eq!(child, Some(expected));
    }

    #[test]
    fn a_program_that_a_person_starts_has_no_role() {
        for line in [&[][..], &["up"], &["--help"], &["supervise", "default"]] {
            assert_eq!(Role::read(line.iter().map(OsString::from)), None, "{line:?}");
        }
    }
}
