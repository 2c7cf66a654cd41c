//! With the child, all its replicas go.

use anyhow::Result;
use kube::ResourceExt;
use tokio::time::{Duration, Instant, sleep};

use crate::contract::live::{requirement::Requirement, run::Run};

/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Deletes the child in the background.
pub async fn takes_all_replicas(run: &Run<'_>) -> Result<()> {
    let (name, started) = (run.good.name(), Instant::now());
    run.scene.expect(None).await;
    run.stage.delete(name).await?;
    loop {
        let (child, replicas) = (run.stage.find(name).await?, run.stage.replicas().await?);
        if child.is_none() && replicas.is_empty() {
            let seconds = started.elapsed().as_secs_f64();
            run.ledger.pass(
                Requirement::Deletion,
                format!("the child and its pods were gone after {seconds:.0} s"),
            );
            return Ok(());
        }
        if started.elapsed() > run.limits.of(Requirement::Deletion) {
            let late = run.in_time(Requirement::Deletion);
            let left = child.map_or_else(
                || {
                    format!(
                        "{} pods are left, although the child is gone: do they have its owner reference?",
                        replicas.len()
                    )
                },
                |child| format!("the child is kept by its finalizers: {}", child.finalizers().join(", ")),
            );
            run.ledger.fail(Requirement::Deletion, format!("{late}: {left}"));
            return Ok(());
        }
        sleep(LOOK_INTERVAL).await;
    }
}
