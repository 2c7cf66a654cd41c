//! A container as a local process.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{process::Child, time::Instant};

use super::{board::End, image, shutdown::Shutdown};
use crate::own_program;

/// What is run, with everything settled: arguments expanded, paths local.
#[derive(Clone, Debug)]
pub struct Program {
    pub supervisor_binary: PathBuf,
    pub binary: PathBuf,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub log: PathBuf,
}

impl Program {
    /// Starts it in a process group of its own.
    pub fn start(&self) -> Result<Process> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("could not open the log {}", self.log.display()))?;
        let mut command = self.command(&self.binary, &self.arguments);
        command.stdout(log.try_clone()?).stderr(log).process_group(0);
        let child = tokio::process::Command::from(command)
            .spawn()
            .with_context(|| format!("could not start {}", self.binary.display()))?;
        let pid = child.id().context("the process ended before it had a pid")?;
        Ok(Process { child, pid, started: Timestamp::now() })
    }

    /// Runs the command of an `exec` probe; a command named like the image means the same binary.
    pub async fn exec(&self, words: &[String]) -> Result<(), String> {
        let (first, arguments) = words.split_first().ok_or("the probe's command is empty")?;
        let same =
            self.binary.file_name().is_some_and(|own| image::binary_name(first) == own.to_string_lossy());
        let program = if same { self.binary.clone() } else { PathBuf::from(first) };
        let mut command = tokio::process::Command::from(self.command(&program, arguments));
        let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).output().await;
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(format!("{first} ended with {}: {}", output.status, said.trim()))
            }
            Err(error) => Err(format!("{first} could not be run: {error}")),
        }
    }

    fn command(&self, program: &Path, arguments: &[String]) -> Command {
        let mut command = own_program::child(&self.supervisor_binary, program, arguments);
        command.envs(&self.environment).current_dir(&self.directory);
        command
    }
}

/// A process that was started.
pub struct Process {
    child: Child,
    pub pid: u32,
    pub started: Timestamp,
}

impl Process {
    /// Waits for its end.
    pub async fn end(&mut self) -> End {
        let status = self.child.wait().await;
        // What it left behind in its group has lost its container.
        self.signal(Signal::KILL);
        let status = status.unwrap_or_else(|_| ExitStatus::from_raw(255 << 8));
        end(status, self.started)
    }

    /// SIGTERM, then SIGKILL after `grace`, or sooner when the shutdown's own time is shorter.
    pub async fn terminate(&mut self, grace: Duration, shutdown: &mut Shutdown) -> End {
        let asked = Instant::now();
        let mut deadline = asked + grace;
        self.signal(Signal::TERM);
        loop {
            tokio::select! {
                end = self.end() => return end,
                () = tokio::time::sleep_until(deadline) => {
                    self.signal(Signal::KILL);
                    return self.end().await;
                }
                () = shutdown.shortened() => {
                    let shorter = shutdown.grace().unwrap_or(grace);
                    deadline = deadline.min(asked + shorter).max(Instant::now());
                }
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.pid.cast_signed()) {
            // Nobody left to receive it is what we want.
            kill_process_group(group, signal).ok();
        }
    }
}

fn end(status: ExitStatus, started: Timestamp) -> End {
    let signal = status.signal();
    let exit_code = status.code().unwrap_or_else(|| 128 + signal.unwrap_or_default());
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    End { exit_code, signal, reason: reason.to_owned(), message: None, started, finished: Timestamp::now() }
}
