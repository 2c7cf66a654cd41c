//! Runs programs until they end, or until Ctrl-C or SIGTERM comes: everything that was started is taken down before this program
//! ends.

use std::{
    fs::{self, File},
    path::Path,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::{
    process::{Pid, Signal, kill_process_group},
    stdio::{dup2_stderr, dup2_stdout},
};
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::files;

/// Time that a child may take to clean up after it was asked to end.
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
                if kind == SignalKind::hangup() {
                    forget_terminal();
                }
                token.cancel();
            });
        }
        Ok(Self(token))
    }

    /// Whether a signal has come.
    #[must_use]
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

    /// Runs a program to its end; an error when it fails or a signal comes. Its children end with it: cargo passes no
    /// signal on to its tests, which would continue in a cluster that is being taken down or belongs to somebody.
    pub async fn run(&self, command: &mut std::process::Command) -> Result<()> {
        self.run_with_grace(command, CHILD_GRACE).await
    }

    /// The same for a program whose output matters only when it fails, and goes to a file.
    pub async fn run_quietly(&self, command: &mut std::process::Command, log: &Path) -> Result<()> {
        let file = files::create(log)?;
        command.stdout(file.try_clone()?).stderr(file);
        self.run(command).await.with_context(|| {
            let said = fs::read_to_string(log).unwrap_or_default();
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            format!("{last}; all of it is in {}", log.display())
        })
    }

    /// The same for a program that takes `grace` to clean up after itself.
    pub async fn run_with_grace(&self, command: &mut std::process::Command, grace: Duration) -> Result<()> {
        let program = command.get_program().to_string_lossy().into_owned();
        if self.came() {
            bail!("interrupted");
        }
        let mut child = Command::from(std::mem::replace(command, std::process::Command::new("true")))
            .kill_on_drop(true)
            .process_group(0)
            // A terminal stops readers that are not in its own process group.
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("could not run {program}: is it installed?"))?;
        let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let status = tokio::select! {
            status = child.wait() => status.with_context(|| format!("could not wait for {program}"))?,
            () = self.0.cancelled() => {
                if let Some(group) = group {
                    kill_process_group(group, Signal::TERM).ok();
                    tokio::time::timeout(grace, child.wait()).await.ok();
                    kill_process_group(group, Signal::KILL).ok();
                }
                bail!("interrupted");
            }
        };
        if !status.success() {
            bail!("{program} ended with {status}");
        }
        Ok(())
    }
}

/// The output of a program that is quick; its own words are the reason of its failure.
pub fn output(command: &mut std::process::Command) -> Result<String> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().display().to_string();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("could not run {program}: is it installed?"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Handles a closed terminal. Writing to it would be an error that ends this program before it has taken down its
/// cluster.
fn forget_terminal() {
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        dup2_stdout(&nowhere).ok();
        dup2_stderr(&nowhere).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, pipe},
        process::Command as StdCommand,
        thread,
    };

    use tokio::{sync::oneshot, time::timeout};

    use super::*;

    #[tokio::test]
    async fn what_a_program_has_started_ends_with_it_when_a_signal_comes() {
        let (output, input) = pipe().unwrap();
        let mut program = StdCommand::new("sh");
        // Like cargo: it ends at once, and its children are not notified.
        program.args(["-c", "sleep 60 & echo started; wait"]).stdout(input);
        let interrupt = Interrupt(CancellationToken::new());
        let (token, (ended, all_ended)) = (interrupt.0.clone(), oneshot::channel());
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            output.read_line(&mut String::new()).unwrap();
            token.cancel();
            // It ends when no writer is left.
            output.read_line(&mut String::new()).unwrap();
            ended.send(()).ok();
        });
        let error = interrupt.run(&mut program).await.unwrap_err();
        assert_eq!(error.to_string(), "interrupted");
        timeout(Duration::from_secs(10), all_ended).await.expect("it runs on").unwrap();
    }
}
