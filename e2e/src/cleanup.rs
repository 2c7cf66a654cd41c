use std::thread;

use anyhow::{Context, Result, anyhow};
use kube::Client;

/// Runs `work` to its end from within a `drop`, on a separate thread and runtime, because those of the test may be
/// ending. Returns whether it succeeded.
pub(crate) fn clean_up<F, Fut>(what: &str, work: F) -> bool
where
    F: FnOnce(Client) -> Fut + Send + 'static,
    Fut: Future<Output = Result<()>>,
{
    let run = move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("could not start the async runtime")?;
        runtime.block_on(async { work(Client::try_default().await?).await })
    };
    let ended = thread::spawn(run).join().unwrap_or_else(|_| Err(anyhow!("it panicked")));
    if let Err(error) = &ended {
        eprintln!("clean-up failed: {what}: {error:#}");
    }
    ended.is_ok()
}
