//! Observed → the condition `Bound`. Pure.

use catena_api::command::BOUND;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use operator_kit::report::Conditions;

use crate::{observed::Observed, verdict::Verdict};

/// The condition that reports the verdict, unless the command shows it already.
#[must_use]
pub fn changed(observed: &Observed, verdict: &Verdict) -> Option<Condition> {
    let command = &observed.command;
    let before = command.row.condition.as_deref();
    let generation = command.metadata.generation.unwrap_or_default();
    let condition = Conditions::new(generation, observed.now)
        .with(BOUND, verdict.is_bound, verdict.reason, verdict.message.as_str())
        .with_transition_times(before.map_or(&[], std::slice::from_ref))
        .pop()?;
    (before != Some(&condition)).then_some(condition)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use command_kinds::CommandKind;
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures;

    const NOW: &str = "2026-01-01T12:00:00Z";
    const BEFORE: &str = "2026-01-01T11:00:00Z";

    /// A command of the generation 2 that has these conditions.
    fn observed(conditions: &Value) -> Observed {
        let file = json!({
            "id": "restarts", "group": "ops.example", "version": "v1", "resource": "restarts", "kind": "Restart",
            "target": {
                "name": "object.spec.target",
                "kinds": [{"group": "apps.example", "version": "v1", "resource": "shops", "kind": "Shop"}],
            },
        });
        let kind = Arc::new(CommandKind::compile(serde_json::from_value(file).unwrap()).unwrap());
        let object = json!({
            "metadata": {"name": "c", "namespace": "here", "uid": "command", "generation": 2},
            "spec": {"target": "a"},
            "status": {"conditions": conditions},
        });
        let command = fixtures::command(&kind, serde_json::from_value(object).unwrap());
        fixtures::observed(command, None, NOW)
    }

    fn missing() -> Verdict {
        Verdict::waiting("TargetNotFound", "there is no Shop a".into())
    }

    /// The condition that reports the missing target, with another value of one field.
    fn said(field: &str, value: Value) -> Value {
        let mut condition = json!({
            "type": BOUND, "status": "False", "reason": "TargetNotFound", "message": "there is no Shop a",
            "observedGeneration": 2, "lastTransitionTime": BEFORE,
        });
        condition[field] = value;
        condition
    }

    #[test]
    fn the_condition_tells_the_verdict_of_this_generation() {
        let condition = changed(&observed(&json!([])), &missing()).unwrap();
        assert_eq!(serde_json::to_value(condition).unwrap(), said("lastTransitionTime", json!(NOW)));
    }

    #[test]
    fn what_the_command_shows_already_is_not_written_again() {
        let before = said("lastTransitionTime", json!(BEFORE));
        assert_eq!(changed(&observed(&json!([before])), &missing()), None);
    }

    #[test]
    fn each_change_is_written_and_the_time_only_with_another_status() {
        for (field, value, since) in [
            ("reason", json!("KindNotServed"), BEFORE),
            ("message", json!("there is no Shop b"), BEFORE),
            ("observedGeneration", json!(1), BEFORE),
            ("status", json!("True"), NOW),
            ("status", json!("Unknown"), NOW),
        ] {
            let before = said(field, value.clone());
            let condition = changed(&observed(&json!([before])), &missing());
            let expected = said("lastTransitionTime", json!(since));
            assert_eq!(serde_json::to_value(condition).unwrap(), expected, "{field}: {value}");
        }
    }

    #[test]
    fn the_conditions_of_others_are_none_of_its_own() {
        let other = said("type", json!("Accepted"));
        assert!(changed(&observed(&json!([other])), &missing()).is_some());
    }

    #[test]
    fn a_command_that_is_bound_says_so() {
        let bound = Verdict {
            is_bound: true,
            reason: "Bound",
            message: "it is owned by the Shop a".into(),
            may_pass: false,
        };
        let before = said("lastTransitionTime", json!(BEFORE));
        let condition = changed(&observed(&json!([before])), &bound).unwrap();
        assert_eq!((&*condition.status, &*condition.reason), ("True", "Bound"));
        assert_eq!(condition.last_transition_time.0, NOW.parse().unwrap());
    }
}
