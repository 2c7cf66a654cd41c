//! Waits for something that nobody announces.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{sleep, timeout};

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
