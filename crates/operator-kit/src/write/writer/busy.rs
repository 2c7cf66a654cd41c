use std::time::Duration;

use crate::write::{WriteCause, WriteError};

/// Times that a write is sent again after the server said that it has too much to do (and did nothing).
const TRIES: u32 = 4;

/// The tries of a write for which the server had no time.
#[derive(Default)]
pub(super) struct Busy {
    tries: u32,
}

impl Busy {
    /// Waits as long as the server asked for. False when it is another error, or it has been asked often enough.
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

/// Writes that were refused together do not come back together.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.5 + rand::random::<f64>())
}
