//! Waiting: for something that nobody announces, and only until Ctrl-C or SIGTERM, so that long work can be cleaned up.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{sleep, timeout},
};

/// As a shell reports a program that SIGINT ended.
const INTERRUPTED: u8 = 130;

/// A request to stop, noticed from the moment on when this is made: when the work begins that has to be cleaned up. Before, a
/// signal ends the program at once, also while it connects or reads standard input.
pub struct Interrupt {
    typed: Signal,
    ended: Signal,
}

impl Interrupt {
    /// Begins to notice requests.
    ///
    /// # Errors
    /// When the system has no signals for them.
    pub fn new() -> Result<Self> {
        let of = |kind| signal(kind).context("signals cannot be received");
        Ok(Self { typed: of(SignalKind::interrupt())?, ended: of(SignalKind::terminate())? })
    }

    /// The result of `work`; `None` if it was interrupted.
    pub async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            _ = self.typed.recv() => None,
            _ = self.ended.recv() => None,
        }
    }
}

/// The exit code of interrupted work.
#[must_use]
pub fn interrupted() -> ExitCode {
    eprintln!("interrupted");
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
