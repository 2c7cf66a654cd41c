//! Observed → the condition `Bound`. Pure.

use catena_api::command::BOUND;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use operator_kit::report::conditions::Conditions;

use crate::{decide::Verdict, observed::Observed};

/// The condition that tells the verdict, unless the command shows it already.
pub fn changed(observed: &Observed, verdict: &Verdict) -> Option<Condition> {
    let command = &observed.command;
    let before = command.row.condition.as_deref();
    let generation = command.metadata.generation.unwrap_or_default();
    let condition = Conditions::new(generation, observed.now)
        .with(BOUND, verdict.is_bound, verdict.reason, verdict.message.as_str())
        .since(before.map_or(&[], std::slice::from_ref))
        .pop()?;
    let told = |condition: &Condition| {
        let Condition { status, reason, message, observed_generation, .. } = condition;
        (status.clone(), reason.clone(), message.clone(), *observed_generation)
    };
    (before.map(told) != Some(told(&condition))).then_some(condition)
}
