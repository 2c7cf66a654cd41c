//! A container as a local process.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::ExitStatus,
    time::Duration,
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{process::Child, time::Instant};

use super::{board::End, shutdown::Shutdown};
use crate::own_program;

/// A resolved command: arguments expanded, paths local.
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
        let mut command = own_program::child(&self.supervisor_binary, &self.binary, &self.arguments);
        command.envs(&self.environment).current_dir(&self.directory);
        command.stdout(log.try_clone()?).stderr(log).process_group(0);
        let child = tokio::process::Command::from(command)
            .spawn()
            .with_context(|| format!("could not start {}", self.binary.display()))?;
        let pid = child.id().context("the process ended before it had a pid")?;
        Ok(Process { child, pid, started: Timestamp::now() })
    }
}

/// A started process.
pub struct Process {
    child: Child,
    pub pid: u32,
    pub started: Timestamp,
}

impl Process {
    /// Waits for its end.
    pub async fn end(&mut self) -> End {
        let status = self.child.wait().await;
        // The remaining processes of its group have lost their container.
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
            // No remaining receiver is a success.
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
