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
pub fn interrupted() -> ExitCode {
    eprintln!("interrupted");
    ExitCode::from(INTERRUPTED)
}

/// Asks again and again until there is an answer; `None` if there is none within the limit.
///
/// # Errors
/// When a question ends in an error.
pub async fn poll<T>(
    interval: Duration,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let answer = async {
        loop {
            if let Some(answer) = ask().await? {
                return anyhow::Ok(answer);
            }
            sleep(interval).await;
        }
    };
    timeout(limit, answer).await.ok().transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_is_asked_until_it_is_answered_fails_or_takes_too_long() {
        let second = Duration::from_secs(1);
        let ask = async |answered: u32, limit: u32| {
            let mut asked = 0;
            let answer = poll(second, limit * second, async || {
                asked += 1;
                Ok((asked == answered).then_some(asked))
            });
            answer.await.unwrap()
        };
        assert_eq!((ask(3, 10).await, ask(3, 1).await), (Some(3), None));
        assert!(poll(second, second, async || -> Result<Option<()>> { anyhow::bail!("no") }).await.is_err());
        assert_eq!(
            poll(second, second, async || Ok(std::future::pending::<Option<()>>().await)).await.unwrap(),
            None
        );
    }
}
