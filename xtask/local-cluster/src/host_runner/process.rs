//! A container as a local process.

use std::{
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::ContainerStateTerminated as End, apimachinery::pkg::apis::meta::v1::Time};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{process::Child, time::Instant};

use super::shutdown::Shutdown;
use crate::own_program;

/// A started process, which leads a group of its own.
pub struct Process {
    child: Child,
    pub pid: u32,
    pub started: Timestamp,
}

impl Process {
    /// Starts a command of [`own_program::child`] for a program.
    pub fn start(command: Command, program: &Path, log: &Path) -> Result<Self> {
        let child = own_program::spawn(command, program, log)?;
        let pid = child.id().context("the process ended before it had a pid")?;
        Ok(Self { child, pid, started: Timestamp::now() })
    }

    /// Waits for its end.
    pub async fn end(&mut self) -> End {
        let status = self.child.wait().await;
        // The remaining processes of its group have lost their container.
        self.signal(Signal::KILL);
        end(status.unwrap_or_else(|_| ExitStatus::from_raw(255 << 8)), self.started)
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
    let exit_code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    End {
        exit_code,
        signal: status.signal(),
        reason: Some(reason.to_owned()),
        started_at: Some(Time(started)),
        finished_at: Some(Time(Timestamp::now())),
        ..End::default()
    }
}
