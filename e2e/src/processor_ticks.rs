/// Processor time of this machine since it started, in the units of `/proc/stat`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProcessorTicks {
    pub(crate) idle: u64,
    pub(crate) stolen: u64,
    pub(crate) all: u64,
}

impl ProcessorTicks {
    /// Those until now; `None` if the kernel does not tell them.
    pub(crate) fn now() -> Option<Self> {
        Self::read(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Those between an earlier time and this one.
    pub(crate) const fn since(&self, earlier: &Self) -> Self {
        Self {
            idle: self.idle.saturating_sub(earlier.idle),
            stolen: self.stolen.saturating_sub(earlier.stolen),
            all: self.all.saturating_sub(earlier.all),
        }
    }

    /// See `proc_stat(5)`: user, nice, system, idle, iowait, irq, softirq, steal; the following ones are part of the
    /// first two. A processor that waits for a disk is idle.
    fn read(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|tick| tick.parse().ok()).collect();
        let [_, _, _, idle, iowait, _, _, stolen] = ticks[..] else { return None };
        Some(Self { idle: idle + iowait, stolen, all: ticks.iter().sum() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_ticks_are_the_eighth_and_those_of_guests_are_not_counted_twice() {
        let ticks = ProcessorTicks::read("cpu  10 20 30 40 50 0 1 9 7 7\ncpu0 1 2 3 4 5 6 7 8 9 0\n");
        assert_eq!(ticks, Some(ProcessorTicks { idle: 90, stolen: 9, all: 160 }));
    }

    #[test]
    fn a_kernel_that_does_not_tell_them_has_none() {
        assert_eq!(ProcessorTicks::read("cpu  10 20 30 40 50 0 1\n"), None);
    }
}
