//! Waiting: for something that nobody announces, and only until Ctrl-C, SIGTERM or the end of the terminal, so that long work can
//! be cleaned up.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{sleep, timeout},
};

use crate::tell;

/// As a shell reports a program that SIGINT ended.
const INTERRUPTED: u8 = 130;

/// A request to stop, noticed from the moment on when this is made: when the work begins that has to be cleaned up. Before, a
/// signal ends the program at once, also while it connects or reads standard input.
pub struct Interrupt {
    typed: Signal,
    ended: Signal,
    hung_up: Option<Signal>,
}

impl Interrupt {
    /// Begins to notice requests.
    ///
    /// # Errors
    /// When the system has no signals for them.
    pub fn new() -> Result<Self> {
        let of = |kind| signal(kind).context("signals cannot be received");
        let hung_up = ends_by_hangup().then(|| of(SignalKind::hangup())).transpose()?;
        Ok(Self { typed: of(SignalKind::interrupt())?, ended: of(SignalKind::terminate())?, hung_up })
    }

    /// The result of `work`; `None` if it was interrupted. A terminal ends once, though both it and its shell may say so.
    pub async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let Self { typed, ended, hung_up } = self;
        tokio::select! {
            done = work => return Some(done),
            _ = typed.recv() => {}
            _ = ended.recv() => {}
            Some(()) = async { hung_up.as_mut()?.recv().await } => self.hung_up = None,
        }
        None
    }
}

/// Whether the end of the terminal ends this program: not with `nohup`, which a handler would undo, nor where that is unknown.
fn ends_by_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok());
    ignored.is_some_and(|signals| signals & 1 == 0)
}

/// The exit code of interrupted work.
#[must_use]
pub fn interrupted() -> ExitCode {
    tell("interrupted");
    ExitCode::from(INTERRUPTED)
}

/// Asks again and again until something is so; `false` if it is not within the limit.
///
/// # Errors
/// When a question ends in an error.
pub async fn until(
    interval: Duration,
    limit: Duration,
    mut is: impl AsyncFnMut() -> Result<bool>,
) -> Result<bool> {
    let answer = async {
        while !is().await? {
            sleep(interval).await;
        }
        Ok(true)
    };
    timeout(limit, answer).await.unwrap_or(Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_is_asked_until_it_is_answered_fails_or_takes_too_long() {
        let second = Duration::from_secs(1);
        let ask = async |answered: u32, limit: u32| {
            let mut asked = 0;
            let answer = until(second, limit * second, async || {
                asked += 1;
                Ok(asked == answered)
            });
            (answer.await.unwrap(), asked)
        };
        assert_eq!(ask(3, 10).await, (true, 3));
        assert!(!ask(3, 1).await.0);
        assert!(until(second, second, async || anyhow::bail!("no")).await.is_err());
        let silent = async || Ok(std::future::pending::<bool>().await);
        assert!(!until(second, second, silent).await.unwrap());
    }
}
