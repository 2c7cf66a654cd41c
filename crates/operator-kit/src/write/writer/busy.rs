use std::time::Duration;

use crate::write::{WriteCause, WriteError};

/// Number of retries of a write after the server answered that it is overloaded (and did nothing).
const TRIES: u32 = 4;

/// The retries of a write that an overloaded server did not perform.
#[derive(Default)]
pub(super) struct Busy {
    tries: u32,
}

impl Busy {
    /// Waits for the delay that the server asked for. False for another error, or after the last retry.
    pub async fn passes(&mut self, error: &WriteError) -> bool {
        let WriteCause::Busy { retry_after, .. } = &error.cause else { return false };
        if self.tries == TRIES {
            return false;
        }
        self.tries += 1;
        tokio::time::sleep(jittered(*retry_after)).await;
        true
    }
}

/// Adds a jitter, so that writes that were refused together do not return together.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.5 + rand::random::<f64>())
}
