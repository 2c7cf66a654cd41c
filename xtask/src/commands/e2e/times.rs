//! Where the time of a run went: how long each test waited for others, held its claim and cleaned up, and the longest chain
//! of tests that exclude each other.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use local_cluster::Access;
use serde::Deserialize;

/// Number of tests that are named as the longest.
const LONGEST: usize = 10;

/// By how many seconds a claim may seem to begin before the one that it waited for has ended: each time is rounded.
const ROUNDED: f64 = 0.3;

/// A line of the file that the suite writes; the times are in seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Times {
    test: String,
    uses: Vec<String>,
    changes: Vec<String>,
    waited: f64,
    held: f64,
    cleaned_up: f64,
    ended_at: Timestamp,
}

/// The file that the suite appends the times to, in a cluster's folder of logs.
pub fn file(logs: &Path) -> PathBuf {
    logs.join("times.jsonl")
}

/// Prints a table for each cluster.
pub fn print(clusters: &[&Access]) -> Result<()> {
    for access in clusters {
        let path = file(&access.logs);
        // There is none if no test came as far as the cluster.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let times: Vec<Times> = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .with_context(|| format!("a line of {} is of another shape", path.display()))?;
        println!("\n{}", table(times));
    }
    Ok(())
}

impl Times {
    fn excludes(&self, other: &Self) -> bool {
        let any = |ours: &[String], theirs: &[String]| ours.iter().any(|one| theirs.contains(one));
        any(&self.changes, &other.changes)
            || any(&self.changes, &other.uses)
            || any(&self.uses, &other.changes)
    }

    /// When the claim began and ended, in seconds.
    fn claim(&self) -> (f64, f64) {
        let released = self.ended_at.as_duration().as_secs_f64() - self.cleaned_up;
        (released - self.held, released)
    }

    fn row(&self) -> String {
        format!("{:>7.1} {:>7.1} {:>7.1}  {}", self.waited, self.held, self.cleaned_up, self.test)
    }
}

fn table(mut times: Vec<Times>) -> String {
    times.sort_by(|a, b| b.held.total_cmp(&a.held));
    let chain = longest_chain(&times);
    let together = |times: &[&Times]| times.iter().map(|one| one.held).sum::<f64>();
    let mut lines = vec![format!("{:>7} {:>7} {:>7}  seconds of each test", "waited", "held", "cleaned")];
    lines.extend(times.iter().map(Times::row));
    let all: Vec<&Times> = times.iter().collect();
    lines.push(format!("\n{} tests held the cluster for {:.0} s together", all.len(), together(&all)));
    lines.push(format!("the {} longest:", LONGEST.min(all.len())));
    lines.extend(times.iter().take(LONGEST).map(Times::row));
    lines.push(format!(
        "the longest chain of tests that exclude each other: {} tests, {:.0} s",
        chain.len(),
        together(&chain)
    ));
    lines.extend(chain.iter().map(|one| one.row()));
    lines.join("\n")
}

/// The tests that held their claims one after the other, each of which excludes the next, with the largest sum.
fn longest_chain(times: &[Times]) -> Vec<&Times> {
    let mut in_order: Vec<&Times> = times.iter().collect();
    in_order.sort_by(|a, b| a.claim().0.total_cmp(&b.claim().0));
    // For each test the sum up to it, and the one before it.
    let mut ends: Vec<(f64, Option<usize>)> = Vec::new();
    for (index, one) in in_order.iter().enumerate() {
        let (began, _) = one.claim();
        let before = (0..index)
            .filter(|before| {
                in_order[*before].claim().1 <= began + ROUNDED && in_order[*before].excludes(one)
            })
            .max_by(|a, b| ends[*a].0.total_cmp(&ends[*b].0));
        ends.push((one.held + before.map_or(0.0, |before| ends[before].0), before));
    }
    let mut next = (0..ends.len()).max_by(|a, b| ends[*a].0.total_cmp(&ends[*b].0));
    let mut chain = Vec::new();
    while let Some(index) = next {
        chain.push(in_order[index]);
        next = ends[index].1;
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(test: &str, changes: &str, began: i64, held: i32) -> Times {
        Times {
            test: test.into(),
            uses: Vec::new(),
            changes: vec![changes.into()],
            waited: 0.0,
            held: f64::from(held),
            cleaned_up: 1.0,
            ended_at: Timestamp::from_second(1_000_000 + began + i64::from(held) + 1).unwrap(),
        }
    }

    #[test]
    fn the_longest_chain_is_of_tests_that_exclude_each_other_and_follow_each_other() {
        let times = [
            times("first", "binder", 0, 5),
            times("beside", "reaper", 0, 9),
            times("second", "binder", 6, 5),
            times("after", "reaper", 10, 2),
        ];
        let chain: Vec<&str> = longest_chain(&times).iter().map(|one| one.test.as_str()).collect();
        assert_eq!(chain, ["beside", "after"]);
        let shown = table(times.to_vec());
        assert!(
            shown.contains("2 tests, 11 s") && shown.contains("4 tests held the cluster for 21 s"),
            "{shown}"
        );
    }

    #[test]
    fn who_only_uses_a_controller_excludes_who_changes_it() {
        let changing = times("changing", "binder", 0, 1);
        let using = Times { uses: vec!["binder".into()], changes: Vec::new(), ..changing.clone() };
        assert!(changing.excludes(&using) && using.excludes(&changing) && !using.excludes(&using));
    }

    #[test]
    fn a_line_of_the_suite_is_read() {
        let line = r#"{"test":"heals::a_pod","uses":["command-binder"],"changes":[],"waited":1.5,"held":2.0,"cleanedUp":0.1,"endedAt":"2026-11-27T12:00:00Z"}"#;
        let times: Times = serde_json::from_str(line).unwrap();
        assert_eq!(times.row(), "    1.5     2.0     0.1  heals::a_pod");
    }
}
