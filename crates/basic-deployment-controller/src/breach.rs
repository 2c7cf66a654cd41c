//! A child that breaks the replica contract. Nothing is written to it, because nobody knows what it would do. Pure.

use crate::{child::Child, error::Refusal, observed::Observed};

/// The output of a child that cannot be read.
#[must_use]
pub fn of(child: &Child, observed: &Observed) -> Option<Refusal> {
    let problem = child.outputs.problem.clone().or_else(|| dropped(child, observed))?;
    Some(Refusal::ContractBroken { kind: child.kind.kind.clone(), name: child.name.clone(), problem })
}

/// The replicas of a child, if they were set and are nevertheless missing: its schema has no such field.
fn dropped(child: &Child, observed: &Observed) -> Option<String> {
    let field = &child.kind.fields().replicas;
    let is_dropped = observed.given_replicas.contains_key(&child.uid) && field.get(&child.object).is_none();
    is_dropped.then(|| {
        format!("contract.replicas: {field} was set, but the API server has dropped it, because the schema of the kind has no such field")
    })
}
