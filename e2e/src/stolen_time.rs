use std::time::Duration;

use tokio::time::Instant;

/// The share of this machine's processors that a hypervisor takes, in which no process here could have run.
pub struct StolenTime {
    since: Instant,
    from: Option<Ticks>,
}

/// Processor time since the machine started, in the units of `/proc/stat`.
struct Ticks {
    stolen: u64,
    all: u64,
}

impl StolenTime {
    /// Measures from now on.
    #[must_use]
    pub fn from_now() -> Self {
        Self { since: Instant::now(), from: Ticks::now() }
    }

    /// The average share of the time since then in which the processors were taken; `None` if it is unknown.
    #[must_use]
    pub fn so_far(&self) -> Duration {
        let (Some(from), Some(to)) = (&self.from, Ticks::now()) else { return Duration::ZERO };
        let (stolen, all) = (to.stolen.saturating_sub(from.stolen), to.all.saturating_sub(from.all));
        let millis = self.since.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        Duration::from_millis(stolen.saturating_mul(millis).checked_div(all).unwrap_or_default())
    }
}

impl Ticks {
    /// See `proc_stat(5)`: user, nice, system, idle, iowait, irq, softirq, steal; the following ones are part of the
    /// first two.
    fn now() -> Option<Self> {
        Self::read(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|tick| tick.parse().ok()).collect();
        Some(Self { stolen: *ticks.get(7)?, all: ticks.iter().sum() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_ticks_are_the_eighth_and_those_of_guests_are_not_counted_twice() {
        let ticks = Ticks::read("cpu  10 20 30 40 50 0 1 9 7 7\ncpu0 1 2 3 4 5 6 7 8 9 0\n");
        assert_eq!(ticks.map(|ticks| (ticks.stolen, ticks.all)), Some((9, 160)));
    }

    #[test]
    fn a_kernel_that_does_not_tell_them_has_none() {
        assert!(Ticks::read("cpu  10 20 30 40 50 0 1\n").is_none());
    }
}
