//! A child that breaks the replica contract. Nothing is written to it, because nobody knows what it would do. Pure.

use crate::{child::Child, error::Refusal};

/// The output of a child that cannot be read; `is_scaled` says whether its replicas were set.
#[must_use]
pub fn of(child: &Child, is_scaled: bool) -> Option<Refusal> {
    let problem = child.outputs.problem.clone().or_else(|| dropped(child, is_scaled))?;
    Some(Refusal::ContractBroken { kind: child.kind.kind.clone(), name: child.name.clone(), problem })
}

/// The replicas of a child, if they were set and are nevertheless missing: its schema has no such field.
fn dropped(child: &Child, is_scaled: bool) -> Option<String> {
    let field = &child.kind.fields().replicas;
    let is_dropped = is_scaled && field.get(&child.object).is_none();
    is_dropped.then(|| {
        format!("contract.replicas: {field} was set, but the API server has dropped it, because the schema of the kind has no such field")
    })
}
