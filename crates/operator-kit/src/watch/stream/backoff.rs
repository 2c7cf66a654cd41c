use std::time::Duration;

use tokio::time::Instant;

const MIN_DELAY: Duration = Duration::from_millis(800);
const MAX_DELAY: Duration = Duration::from_secs(10);
/// Time between tries while a kind is not served: an object that is created right after its kind must not wait long for
/// its controller.
const UNSERVED_DELAY: Duration = Duration::from_secs(2);
/// Time without a failure after which the backoff is reset.
const RESET_AFTER: Duration = Duration::from_secs(25);

/// The backoff of a watch: 0.8 s, doubling to 10 s, with jitter.
pub(super) struct WatchBackoff {
    next: Duration,
    last: Option<Instant>,
}

impl Default for WatchBackoff {
    fn default() -> Self {
        Self { next: MIN_DELAY, last: None }
    }
}

impl WatchBackoff {
    /// The pause after a failure.
    pub fn after_failure(&mut self) -> Duration {
        if !self.is_recent() {
            self.next = MIN_DELAY;
        }
        let delay = jittered(self.next);
        self.next = (self.next * 2).min(MAX_DELAY);
        self.last = Some(Instant::now() + delay);
        delay
    }

    /// The pause while the cluster does not know the kind.
    pub fn while_not_served() -> Duration {
        jittered(UNSERVED_DELAY)
    }

    /// The pause before a remedy that usually helps at once: none, unless it was tried just now.
    pub fn before_retry(&mut self) -> Duration {
        if self.is_recent() {
            return self.after_failure();
        }
        self.last = Some(Instant::now());
        Duration::ZERO
    }

    fn is_recent(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() < RESET_AFTER)
    }
}

fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(0.8 + 0.2 * rand::random::<f64>())
}
