//! The noise of the machine: who used its CPUs during a measurement.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context, Result, ensure};

use super::{
    figure::{Figure, Unit},
    process::Stat,
};

/// CPU time of all CPUs since the machine was started, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    elapsed: u64,
    busy: u64,
    /// Taken by the host of a virtual machine.
    stolen: u64,
    /// Used by the measured cluster and by the benchmark itself.
    ours: u64,
}

impl Machine {
    /// The CPU time so far; the processes of `roots` and their descendants are ours.
    pub fn now(roots: &[u32]) -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("could not read /proc/stat")?;
        Self::parse(&text, used_by(roots, &processes()?))
    }

    fn parse(text: &str, ours: u64) -> Result<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).context("no CPU in /proc/stat")?;
        let fields: Vec<u64> =
            line.split_whitespace().map(|field| field.parse().unwrap_or(0)).take(8).collect();
        ensure!(fields.len() == 8, "/proc/stat has only {} fields", fields.len());
        // user, nice, system, idle, iowait, irq, softirq, steal; the guests after these are in user and nice already.
        let (elapsed, idle, stolen) = (fields.iter().sum::<u64>(), fields[3] + fields[4], fields[7]);
        Ok(Self { elapsed, busy: elapsed - idle - stolen, stolen, ours })
    }

    /// The shares of all CPU time since `before`.
    pub fn since(&self, before: &Self) -> Vec<Figure> {
        let elapsed = self.elapsed.saturating_sub(before.elapsed).max(1);
        let busy = self.busy.saturating_sub(before.busy);
        let ours = self.ours.saturating_sub(before.ours);
        // Ticks are rounded for each process, so that ours can exceed the sum by a little.
        let others = busy.saturating_sub(ours);
        let stolen = self.stolen.saturating_sub(before.stolen);
        [("busy", busy), ("by the cluster and this command", ours), ("by others", others), ("stolen", stolen)]
            .map(|(name, part)| Figure::new(format!("machine: {name}"), Unit::Percent, share(part, elapsed)))
            .into()
    }
}

#[expect(clippy::cast_precision_loss, reason = "ticks of a machine are far below 2^52")]
fn share(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole as f64
}

/// All processes of the machine by pid, without those that end meanwhile.
fn processes() -> Result<BTreeMap<u32, Stat>> {
    let entries = fs::read_dir("/proc").context("could not list /proc")?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let stat = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, Stat::parse(&text).ok()?))
    };
    Ok(pids.filter_map(stat).collect())
}

/// The CPU time of the processes of `roots` and their descendants, including the ended ones.
fn used_by(roots: &[u32], processes: &BTreeMap<u32, Stat>) -> u64 {
    let mut ours: BTreeSet<u32> = roots.iter().copied().collect();
    loop {
        let is_new = |(pid, stat): &(&u32, &Stat)| ours.contains(&stat.parent) && !ours.contains(pid);
        let children: Vec<u32> = processes.iter().filter(is_new).map(|(pid, _)| *pid).collect();
        if children.is_empty() {
            break;
        }
        ours.extend(children);
    }
    ours.iter().filter_map(|pid| processes.get(pid)).map(|stat| stat.cpu + stat.cpu_of_children).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(text: &str, ours: u64) -> Machine {
        Machine::parse(&format!("{text}\ncpu0 1 1 1 1 1 1 1 1 0 0\n"), ours).unwrap()
    }

    #[test]
    fn what_neither_we_nor_the_host_took_was_taken_by_others() {
        let before = machine("cpu  100 10 20 1000 5 1 2 3 50 0", 40);
        let after = machine("cpu  150 15 45 1070 35 6 12 13 90 0", 110);
        let shares: Vec<(String, f64)> =
            after.since(&before).into_iter().map(|figure| (figure.name, figure.value.round())).collect();
        let named = |(name, share): (&str, f64)| (format!("machine: {name}"), share);
        // 205 ticks passed: 95 of them busy, 10 stolen; 70 of the busy ones were ours.
        let wanted = [("busy", 46.0), ("by the cluster and this command", 34.0), ("by others", 12.0)];
        assert_eq!(shares[..3], wanted.map(named));
        assert_eq!(shares[3..], [("stolen", 5.0)].map(named));
        Machine::parse("cpu 1 2 3", 0).unwrap_err();
        Machine::parse("intr 1 2 3", 0).unwrap_err();
    }

    #[test]
    fn descendants_count_also_when_they_have_ended() {
        let stat = |parent, cpu, cpu_of_children| Stat { parent, cpu, cpu_of_children, started: 0 };
        let processes = [
            (1, stat(0, 1000, 1000)),
            (20, stat(1, 1, 2)),
            (10, stat(20, 4, 8)),
            (30, stat(10, 16, 0)),
            (40, stat(1, 500, 0)),
            (50, stat(1, 32, 0)),
        ]
        .into();
        assert_eq!(used_by(&[20, 50], &processes), 1 + 2 + 4 + 8 + 16 + 32);
        // A root that is a descendant of another one counts once.
        assert_eq!(used_by(&[20, 10], &processes), 1 + 2 + 4 + 8 + 16);
        assert_eq!(used_by(&[99], &processes), 0);
    }
}
