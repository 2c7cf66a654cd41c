//! Ctrl-C and SIGTERM as something to react to: what was started is taken down before this program ends.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

/// A child that was told to end may tidy up first.
const CHILD_GRACE: Duration = Duration::from_secs(10);

/// Set once a signal to end has come.
#[derive(Clone)]
pub struct Interrupt(CancellationToken);

impl Interrupt {
    /// Listens from now on; the signals no longer end this program by themselves.
    pub fn listen() -> Result<Self> {
        let token = CancellationToken::new();
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            let mut signals = signal(kind).context("could not listen for signals")?;
            let token = token.clone();
            tokio::spawn(async move {
                signals.recv().await;
                token.cancel();
            });
        }
        Ok(Self(token))
    }

    /// Whether a signal has come.
    pub fn came(&self) -> bool {
        self.0.is_cancelled()
    }

    /// The future's result, or an error when a signal comes first.
    pub async fn or<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        match self.0.run_until_cancelled(future).await {
            Some(result) => result,
            None => bail!("interrupted"),
        }
    }

    /// Runs a program to its end; an error when it fails or a signal comes.
    pub async fn run(&self, command: &mut std::process::Command) -> Result<()> {
        let program = command.get_program().to_string_lossy().into_owned();
        if self.came() {
            bail!("interrupted");
        }
        let mut child = Command::from(std::mem::replace(command, std::process::Command::new("true")))
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("could not run {program}: is it installed?"))?;
        let status = tokio::select! {
            status = child.wait() => status.with_context(|| format!("could not wait for {program}"))?,
            () = self.0.cancelled() => {
                if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
                    kill_process(pid, Signal::TERM).ok();
                }
                tokio::time::timeout(CHILD_GRACE, child.wait()).await.ok();
                bail!("interrupted");
            }
        };
        if !status.success() {
            bail!("{program} ended with {status}");
        }
        Ok(())
    }
}
