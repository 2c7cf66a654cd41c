//! The request to end the containers of a pod.

use std::time::Duration;

use tokio::sync::watch;

/// The time that the containers of a pod have to end, once they are asked to; it only gets shorter. Each has a copy.
#[derive(Clone)]
pub struct Shutdown(pub watch::Receiver<Option<Duration>>);

impl Shutdown {
    /// The time to end, once asked.
    pub fn grace(&self) -> Option<Duration> {
        *self.0.borrow()
    }

    /// Waits until asked; without the pod's task, nothing is left to wait for.
    pub async fn asked(&mut self) -> Duration {
        self.0.wait_for(Option::is_some).await.map_or(Duration::ZERO, |grace| grace.unwrap_or_default())
    }

    /// Waits until the time was shortened once more.
    pub async fn shortened(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Sleeps until then, or until asked.
    pub async fn sleep(&mut self, duration: Duration) {
        tokio::time::timeout(duration, self.asked()).await.ok();
    }
}
