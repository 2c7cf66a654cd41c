use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::processor_ticks::ProcessorTicks;

/// Time over which the processors have to be idle, mostly.
const WINDOW: Duration = Duration::from_secs(2);

/// Time after which others on this machine do not seem to end.
const CALM_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until this machine does little, for tests that measure a time. An API server works for many seconds on what
/// the tests before did: definitions that it serves, namespaces that it deletes, watches that come back after its
/// restart. Work that is not of this suite is not waited for without an end.
pub async fn until_calm() {
    let began = Instant::now();
    while let Some(from) = ProcessorTicks::now()
        && began.elapsed() < CALM_TIMEOUT
    {
        sleep(WINDOW).await;
        if ProcessorTicks::now().is_none_or(|to| is_calm(&to.since(&from))) {
            break;
        }
    }
}

/// At least two thirds of the processors' time was idle.
const fn is_calm(ticks: &ProcessorTicks) -> bool {
    3 * ticks.idle >= 2 * ticks.all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_calm_while_two_thirds_of_its_processors_are_idle() {
        assert!(is_calm(&ProcessorTicks { idle: 280, stolen: 0, all: 400 }));
        assert!(!is_calm(&ProcessorTicks { idle: 200, stolen: 0, all: 400 }));
    }
}
