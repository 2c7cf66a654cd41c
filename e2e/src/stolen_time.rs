use std::time::Duration;

use tokio::time::Instant;

use crate::processor_ticks::ProcessorTicks;

/// The share of this machine's processors that a hypervisor takes, in which no process here could have run.
pub struct StolenTime {
    since: Instant,
    from: Option<ProcessorTicks>,
}

impl StolenTime {
    /// Measures from now on.
    #[must_use]
    pub fn from_now() -> Self {
        Self { since: Instant::now(), from: ProcessorTicks::now() }
    }

    /// The average share of the time since then in which the processors were taken; zero if it is unknown.
    #[must_use]
    pub fn so_far(&self) -> Duration {
        let (Some(from), Some(to)) = (&self.from, ProcessorTicks::now()) else { return Duration::ZERO };
        let ticks = to.since(from);
        let millis = self.since.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        Duration::from_millis(ticks.stolen.saturating_mul(millis).checked_div(ticks.all).unwrap_or_default())
    }
}
