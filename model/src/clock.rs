//! The server's clock, which advances in ticks.

use std::time::Duration;

use jiff::Timestamp;

/// Seconds of one tick of the server's clock: more than any delay of the controller.
const TICK: u64 = 60;

/// Start of the server's clock.
const EPOCH: Duration = Duration::from_secs(1_000_000);

/// A point in time, from the server's clock.
pub fn time(clock: u8) -> Timestamp {
    Timestamp::UNIX_EPOCH + EPOCH + duration(clock)
}

/// The duration of a number of ticks.
pub fn duration(ticks: u8) -> Duration {
    Duration::from_secs(u64::from(ticks) * TICK)
}
