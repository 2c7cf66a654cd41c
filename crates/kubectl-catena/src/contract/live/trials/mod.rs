//! The trials, in their order: each begins where the one before it ended.

mod bad_template;
mod deletion;
mod restart;
mod scaling;
mod selector;
mod steady_state;

use anyhow::Result;

use super::{requirement::Requirement, run::Run};

/// Makes all of them.
pub async fn all(run: &Run<'_>) -> Result<()> {
    run.step(0, "creating a child with one replica");
    if !scaling::starts(run).await? {
        return Ok(());
    }
    run.stage.mark(run.good.name()).await?;
    run.step(1, "a template that never serves, with one replica");
    bad_template::is_told(run, 1).await?;
    run.step(3, "scaling up");
    scaling::follows(run, 1, 3).await?;
    run.scene.count_serving();
    run.step(4, "scaling down");
    scaling::follows(run, 3, 2).await?;
    selector::selects(run);
    run.step(5, "a template that never serves, with two replicas");
    bad_template::is_told(run, 2).await?;
    run.step(7, "another restart token");
    restart::replaces_all(run, 2).await?;
    holds_its_budget(run);
    run.step(8, "waiting for the steady state");
    steady_state::is_silent(run).await;
    steady_state::leaves_foreign_fields(run).await?;
    run.step(10, "deleting the child");
    deletion::takes_all_replicas(run).await
}

fn holds_its_budget(run: &Run<'_>) {
    match run.scene.least_serving() {
        Some(0) => {
            let seen = "at some time no pod served, although two or more were desired";
            run.ledger.fail(Requirement::Budget, seen);
        }
        Some(least) => {
            run.ledger.pass(Requirement::Budget, format!("{least} or more pods served at any time"));
        }
        None => {}
    }
}
