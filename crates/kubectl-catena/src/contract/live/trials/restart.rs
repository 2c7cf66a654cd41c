//! Another restart token: all replicas are replaced.

use anyhow::Result;
use jiff::Timestamp;

use crate::contract::live::{requirement::Requirement, run::Run};

/// Sets another token.
pub async fn replaces_all(run: &Run<'_>, replicas: i32) -> Result<()> {
    if run.contract().restarted_at.is_none() {
        run.ledger.skip(Requirement::Restart, "the kind has no restart token");
        run.ledger.skip(Requirement::Updated, "the kind has no restart token");
        return Ok(());
    }
    let before = run.scene.uids();
    let token = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let generation = run.change(run.good, replicas, Some(&token), &before, Requirement::Ready).await?;
    if !run.settle(replicas, generation, &before, Requirement::Restart).await {
        run.ledger.skip(Requirement::Updated, "nothing was replaced");
        return Ok(());
    }
    run.ledger.pass(Requirement::Restart, format!("all {replicas} pods were replaced"));
    let name = run.good.name();
    match run.scene.child(name).and_then(|child| child.outputs.updated) {
        None => run.ledger.fail(Requirement::Updated, "it is not reported"),
        Some(_)
            if run
                .until(name, Requirement::Updated, |view| view.child.outputs.updated == Some(replicas))
                .await =>
        {
            run.ledger.pass(Requirement::Updated, "it was the number of new pods");
        }
        Some(updated) => {
            run.ledger.fail(Requirement::Updated, format!("it stays {updated} with {replicas} new pods"));
        }
    }
    Ok(())
}
