//! Asks the containers of a pod to end within a time.

use std::time::Duration;

use tokio::sync::watch;

/// The sending side.
pub struct Teller(watch::Sender<Option<Duration>>);

/// The receiving side; each container has one.
#[derive(Clone)]
pub struct Shutdown(watch::Receiver<Option<Duration>>);

/// A pair of both sides.
pub fn channel() -> (Teller, Shutdown) {
    let (sender, receiver) = watch::channel(None);
    (Teller(sender), Shutdown(receiver))
}

impl Teller {
    /// Asks to end within `grace`. A later call can only shorten the time.
    pub fn ask(&self, grace: Duration) {
        self.0.send_if_modified(|current| {
            let shorter = current.is_none_or(|current| grace < current);
            if shorter {
                *current = Some(grace);
            }
            shorter
        });
    }
}

impl Shutdown {
    /// The time to end, once asked.
    pub fn grace(&self) -> Option<Duration> {
        *self.0.borrow()
    }

    /// Waits until asked.
    pub async fn asked(&mut self) -> Duration {
        match self.0.wait_for(Option::is_some).await {
            Ok(grace) => grace.unwrap_or_default(),
            // The pod's task is gone, so nothing is left to wait for.
            Err(_) => Duration::ZERO,
        }
    }

    /// Waits until the time was shortened once more.
    pub async fn shortened(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Sleeps; true unless it was asked to end meanwhile.
    pub async fn sleeps(&mut self, duration: Duration) -> bool {
        tokio::time::timeout(duration, self.asked()).await.is_err()
    }
}
