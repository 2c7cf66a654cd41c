//! CPU and memory of a process, from /proc.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// A process to measure.
pub struct Process {
    pub name: String,
    pub pid: u32,
}

/// The resource usage of a process so far.
pub struct Usage {
    /// CPU time, of all its threads.
    pub cpu: Duration,
    /// Resident memory in KiB.
    pub resident: u64,
    /// Peak resident memory in KiB.
    pub resident_at_most: u64,
}

impl Process {
    /// Its usage so far.
    pub fn usage(&self) -> Result<Usage> {
        let read = |file: &str| {
            let path = format!("/proc/{}/{file}", self.pid);
            fs::read_to_string(&path).with_context(|| format!("could not read {path}: {} ended", self.name))
        };
        let stat = read("stat")?;
        // The name in parentheses may contain spaces; utime and stime are the 12th and 13th fields after it.
        let fields: Vec<u64> = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect())
            .unwrap_or_default();
        let ticks = fields.get(11).unwrap_or(&0) + fields.get(12).unwrap_or(&0);
        let status = read("status")?;
        let kib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
            line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
        };
        // Linux counts in hundredths of a second on every architecture that it runs Kubernetes on.
        Ok(Usage {
            cpu: Duration::from_millis(ticks * 10),
            resident: kib("VmRSS:"),
            resident_at_most: kib("VmHWM:"),
        })
    }
}
