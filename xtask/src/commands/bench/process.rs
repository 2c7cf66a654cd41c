//! CPU, memory and age of a process, from /proc.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// Linux counts in hundredths of a second on every architecture that it runs Kubernetes on.
const TICK: Duration = Duration::from_millis(10);

/// A process to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub name: String,
    pub pid: u32,
}

/// The resource usage of a process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time, of all its threads.
    pub cpu: Duration,
    /// Resident memory in KiB.
    pub resident: u64,
    /// Peak resident memory in KiB.
    pub peak: u64,
}

/// The fields of /proc/PID/stat that are read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub parent: u32,
    /// CPU time of all its threads, in ticks.
    pub cpu: u64,
    /// CPU time of its ended children, in ticks.
    pub cpu_of_children: u64,
    /// Its start, in ticks since the machine was started.
    pub started: u64,
}

impl Process {
    /// Its usage so far.
    pub fn usage(&self) -> Result<Usage> {
        let status = self.read("status")?;
        let kib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
            line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
        };
        Ok(Usage { cpu: ticks(self.stat()?.cpu), resident: kib("VmRSS:"), peak: kib("VmHWM:") })
    }

    /// Makes its peak memory count from now on.
    pub fn reset_peak(&self) -> Result<()> {
        let path = format!("/proc/{}/clear_refs", self.pid);
        fs::write(&path, "5").with_context(|| format!("could not write {path}"))
    }

    /// The time since its start.
    pub fn age(&self) -> Result<Duration> {
        let uptime = fs::read_to_string("/proc/uptime").context("could not read /proc/uptime")?;
        let uptime = uptime.split_whitespace().next().and_then(|seconds| seconds.parse().ok());
        let uptime = Duration::from_secs_f64(uptime.context("/proc/uptime holds no number")?);
        Ok(uptime.saturating_sub(ticks(self.stat()?.started)))
    }

    /// Kills it (SIGKILL).
    pub fn kill(&self) -> Result<()> {
        let pid = Pid::from_raw(self.pid.cast_signed()).context("0 is no process")?;
        kill_process(pid, Signal::KILL).with_context(|| format!("could not kill {}", self.name))
    }

    fn stat(&self) -> Result<Stat> {
        Stat::parse(&self.read("stat")?)
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.pid);
        fs::read_to_string(&path).with_context(|| format!("could not read {path}: {} ended", self.name))
    }
}

impl Stat {
    /// Parses the text of /proc/PID/stat.
    pub fn parse(text: &str) -> Result<Self> {
        // The second field is the name in parentheses, which may contain spaces.
        let (_, rest) = text.rsplit_once(')').context("a process has no name")?;
        let fields: Vec<u64> = rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        ensure!(fields.len() > 19, "a process has only {} fields", fields.len());
        // Field 3 of proc(5) is the first one here.
        Ok(Self {
            parent: u32::try_from(fields[1])?,
            cpu: fields[11] + fields[12],
            cpu_of_children: fields[13] + fields[14],
            started: fields[19],
        })
    }
}

fn ticks(count: u64) -> Duration {
    TICK * u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "7 (a (b) c) S 3 7 7 0 -1 4194560 1 2 3 4 150 25 1000 200 20 0 9 0 4242 1 2";

    #[test]
    fn a_name_with_spaces_and_parentheses_shifts_no_field() {
        let stat = Stat { parent: 3, cpu: 175, cpu_of_children: 1200, started: 4242 };
        assert_eq!(Stat::parse(TEXT).unwrap(), stat);
        Stat::parse("7 (a) S 3").unwrap_err();
    }

    #[test]
    fn this_process_has_an_age_and_uses_memory() {
        let this = Process { name: "this".into(), pid: std::process::id() };
        let usage = this.usage().unwrap();
        assert!(usage.resident > 1000 && usage.peak >= usage.resident, "{usage:?}");
        assert!(this.age().unwrap() < Duration::from_secs(600), "{:?}", this.age());
    }
}
