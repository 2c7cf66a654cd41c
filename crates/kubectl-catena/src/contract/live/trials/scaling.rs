//! The replicas follow the desired number.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::contract::live::{requirement::Requirement, run::Run};

/// Creates the child with one replica. `false` if it never serves.
pub async fn starts(run: &Run<'_>) -> Result<bool> {
    let none = BTreeSet::new();
    let generation = run.change(run.good, 1, None, &none, Requirement::Ready).await?;
    Ok(run.settle(1, generation, &none, Requirement::Scaling).await)
}

/// Changes the number of replicas.
pub async fn follows(run: &Run<'_>, from: i32, to: i32) -> Result<()> {
    let none = BTreeSet::new();
    let generation = run.change(run.good, to, None, &none, Requirement::Ready).await?;
    if run.settle(to, generation, &none, Requirement::Scaling).await {
        let (low, high) = (from.min(to), from.max(to));
        run.ledger.pass(Requirement::Scaling, format!("from 1 to {high} and back to {low} pods"));
    }
    Ok(())
}
