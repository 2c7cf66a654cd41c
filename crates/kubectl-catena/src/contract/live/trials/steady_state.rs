//! While nothing changes, nothing is written, and what others wrote stays.

use std::collections::BTreeMap;

use anyhow::Result;
use tokio::time::{Duration, Instant, sleep};

use crate::contract::live::{requirement::Requirement, run::Run};

/// Time between two looks at the versions of all objects, which the watches keep.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Waits until nothing is written for a while.
pub async fn is_silent(run: &Run<'_>) {
    let deadline = Instant::now() + run.limits.of(Requirement::SteadyState);
    let (mut last, mut since) = (run.scene.versions(), Instant::now());
    let mut writes: BTreeMap<String, usize> = BTreeMap::new();
    loop {
        if since.elapsed() >= run.limits.window {
            let seconds = run.limits.window.as_secs();
            run.ledger
                .pass(Requirement::SteadyState, format!("no write to the child or its pods for {seconds} s"));
            return;
        }
        if Instant::now() > deadline {
            let most = writes.iter().max_by_key(|(_, count)| **count);
            let most =
                most.map_or_else(String::new, |(name, count)| format!("; {name} changed {count} times"));
            let late = run.in_time(Requirement::SteadyState);
            run.ledger.fail(Requirement::SteadyState, format!("no rest {late}{most}"));
            return;
        }
        sleep(LOOK_INTERVAL).await;
        let now = run.scene.versions();
        if now != last {
            for (name, _) in now.iter().filter(|(name, version)| last.get(*name) != Some(version)) {
                *writes.entry(name.clone()).or_default() += 1;
            }
            (last, since) = (now, Instant::now());
        }
    }
}

/// Looks for the label and the annotation that somebody else has set before all other trials.
pub async fn leaves_foreign_fields(run: &Run<'_>) -> Result<()> {
    let lost = run.stage.lost_marks(run.good.name()).await?;
    if lost.is_empty() {
        let seen = "a label and an annotation of another field manager stayed";
        run.ledger.pass(Requirement::ForeignFields, seen);
    } else {
        let lost = lost.join(" and the ");
        run.ledger.fail(Requirement::ForeignFields, format!("the {lost} of another field manager is gone"));
    }
    Ok(())
}
