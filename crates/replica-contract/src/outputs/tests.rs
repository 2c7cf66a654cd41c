use jiff::Timestamp;
use serde_json::json;

use super::*;

fn mapping(contract: Value) -> Mapping {
    serde_json::from_value(contract).unwrap()
}

#[test]
fn another_kind_is_read_at_its_own_fields() {
    let contract = json!({
        "active": "status.readyReplicas",
        "ready": {"cel": "object.status.?updatedReplicas.orValue(0) == object.spec.replicas"},
        "stalled": {"cel": "object.status.phase == 'Degraded' ? {'reason': 'Degraded', 'message': 'x'} : null"},
        "observedGeneration": {"cel": "int(object.status.observedGeneration)"},
    });
    let child = json!({
        "spec": {"replicas": 2},
        "status": {"readyReplicas": 2, "observedGeneration": "7", "phase": "Degraded"},
    });
    let outputs = mapping(contract).outputs(&child, 7);
    assert_eq!((outputs.active, outputs.observed_generation, outputs.ready), (2, Some(7), false));
    let stalled = Stalled { reason: "Degraded".into(), message: "x".into() };
    assert_eq!((outputs.stalled, outputs.problem), (Some(stalled), None));
}

#[test]
fn an_expression_over_a_field_that_is_missing_has_not_been_reported_yet() {
    let contract = json!({
        "observedGeneration": {"cel": "int(object.status.observedGeneration)"},
        "ready": {"cel": "object.status.phase.startsWith('Run') && size(object.status.pods) == 2"},
    });
    for child in [json!({"spec": {"replicas": 2}}), json!({"status": {"phase": "Running"}})] {
        let outputs = mapping(contract.clone()).outputs(&child, 1);
        assert_eq!((outputs.observed_generation, outputs.ready, outputs.problem), (None, false, None));
    }
}

#[test]
fn a_quoted_field_is_read() {
    let contract = json!({
        "active": {"cel": "object.status.`ready-replicas`"},
        "ready": {"cel": "has(object.status.`ready-replicas`)"},
        "stalled": {"cel": "object.status.?`why-not`.orValue(null)"},
    });
    let status = json!({"ready-replicas": 2, "why-not": {"reason": "Odd", "message": "x"}});
    let outputs = mapping(contract).outputs(&json!({ "status": status }), 1);
    assert_eq!((outputs.active, outputs.ready, outputs.problem), (2, true, None));
    assert_eq!(outputs.stalled.map(|stalled| stalled.reason).as_deref(), Some("Odd"));
    // A path has other quotes, and is refused with these.
    serde_json::from_value::<Mapping>(json!({"active": "status.`ready-replicas`"})).unwrap_err();
}

#[test]
fn a_time_after_all_times_in_a_blocker_is_the_latest_and_no_breach() {
    let of = |since: &str| {
        let blocker =
            json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "reason": "Why", "since": since});
        Mapping::default().outputs(&json!({"status": {"blockedBy": blocker}}), 1)
    };
    for far in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59+14:00"] {
        let outputs = of(far);
        assert_eq!(outputs.problem, None, "{far}");
        assert_eq!(outputs.blocked_by.and_then(|by| by.since).map(|since| since.0), Some(Timestamp::MAX));
    }
    assert!(of("someday").problem.is_some_and(|problem| problem.contains("blockedBy")));
}

#[test]
fn readiness_is_reported_by_a_condition_about_the_current_spec() {
    let of = |conditions: Value| {
        let child = json!({"status": {"active": 3, "conditions": conditions}});
        Mapping::default().outputs(&child, 2).ready
    };
    assert!(of(json!([{"type": "Ready", "status": "True", "observedGeneration": 2}])));
    assert!(of(json!([{"type": "Ready", "status": "True"}])));
    assert!(!of(json!([{"type": "Ready", "status": "True", "observedGeneration": 1}])));
    assert!(!of(json!([{"type": "Ready", "status": "False", "observedGeneration": 2}])));
    assert!(!of(json!([])), "numbers alone do not tell it");
}

#[test]
fn an_output_of_another_type_is_named_and_never_ready() {
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let child = json!({"status": {"active": "3", "conditions": ready}});
    let outputs = Mapping::default().outputs(&child, 1);
    let problem = outputs.problem.unwrap();
    assert_eq!(problem, "contract.active: status.active is a string, but must be an integer");
    assert!(!outputs.ready);
    let outputs = mapping(json!({"ready": {"cel": "object.status.active / 0 == 1"}})).outputs(&child, 1);
    assert!(outputs.problem.is_some_and(|problem| problem.contains("contract.")));
}

#[test]
fn an_output_that_cannot_be_reported_is_named_and_never_dropped() {
    let problem = |status: Value| {
        let outputs = Mapping::default().outputs(&json!({"status": status}), 3);
        assert!(!outputs.ready);
        outputs.problem.unwrap_or_default()
    };
    let condition = |type_: &str, field: &str, value: Value| {
        let mut told = json!({"type": type_, "status": "True", "reason": "Why"});
        told[field] = value;
        problem(json!({"conditions": [told]}))
    };
    let blocker = json!({"apiVersion": "v1", "kind": "Pod", "name": 5, "reason": "Why"});
    for (told, expected) in [
        (problem(json!({"active": 99_999_999_999_i64})), "active: status.active is 99999999999, but"),
        (problem(json!({"active": -5})), "active: status.active is -5, but"),
        (problem(json!({"updated": -1})), "updated: status.updated is -1, but"),
        (
            problem(json!({"observedGeneration": 4})),
            "observedGeneration: status.observedGeneration is 4, but metadata.generation is only 3",
        ),
        (problem(json!({"blockedBy": blocker})), "blockedBy: status.blockedBy: name is a number, but"),
        (
            problem(json!({"blockedBy": {"kind": "Pod"}})),
            "blockedBy: status.blockedBy: missing field `apiVersion`",
        ),
        (
            problem(json!({"conditions": {"Ready": "True"}})),
            "conditions: status.conditions is a map, but must be a list",
        ),
        (
            condition("Ready", "reason", 7.into()),
            "conditions: status.conditions, condition Ready: reason is a number",
        ),
        (
            condition("Stalled", "message", 7.into()),
            "conditions: status.conditions, condition Stalled: message is",
        ),
        (
            condition("Ready", "status", true.into()),
            "conditions: status.conditions, condition Ready: status is a boolean",
        ),
        (
            condition("Ready", "observedGeneration", "3".into()),
            "conditions: status.conditions, condition Ready: observedGeneration is a string",
        ),
    ] {
        assert!(told.starts_with(&format!("contract.{expected}")), "{told:?} instead of {expected:?}");
    }
}

#[test]
fn what_a_mapping_does_not_use_and_what_says_nothing_breaks_nothing() {
    let ready = json!({"cel": "object.status.phase == 'Healthy'"});
    let mapping = mapping(json!({"ready": ready, "stalled": {"cel": "object.status.?stalled"}}));
    let status = json!({"phase": "Healthy", "conditions": {"Ready": "True"}, "blockedBy": {}});
    let outputs = mapping.outputs(&json!({"status": status}), 1);
    assert_eq!((outputs.ready, outputs.blocked_by, outputs.problem), (true, None, None));
    let stalled = json!([{"type": "Stalled", "status": "True"}]);
    let outputs = Mapping::default().outputs(&json!({"status": {"conditions": stalled}}), 1);
    assert_eq!(
        outputs.stalled.map(|stalled| stalled.reason),
        Some("Stalled".into()),
        "its reason is not a must"
    );
}

#[test]
fn a_pause_is_read_with_its_reason() {
    let read = |pause: Value| {
        let child = json!({"status": {"paused": pause}});
        let outputs = mapping(json!({"paused": "status.paused"})).outputs(&child, 1);
        (outputs.paused.map(|pause| pause.reason), outputs.problem)
    };
    assert_eq!(read(json!({"reason": "StepReached"})), (Some("StepReached".into()), None));
    assert_eq!(read(json!({})), (None, None), "an empty one says nothing");
    let (_, problem) = read(json!({"message": "why"}));
    assert!(problem.unwrap().starts_with("contract.paused: status.paused: "), "its reason is a must");
}

#[test]
fn a_new_child_without_a_status_breaks_nothing() {
    let contract = json!({"active": {"cel": "object.status.a"}, "ready": {"cel": "object.status.b == 1"}});
    assert_eq!(mapping(contract).outputs(&json!({"spec": {}}), 1), Outputs::default());
}

#[test]
fn an_expression_that_does_not_compile_is_refused_with_its_field() {
    let error = serde_json::from_value::<Mapping>(json!({"ready": {"cel": "object.("}})).unwrap_err();
    assert!(error.to_string().contains("contract.ready"), "{error}");
}

#[test]
fn what_is_optional_is_read_only_where_it_is_named() {
    let status = json!({"active": 2, "available": 3, "terminating": 1});
    let read = |contract: Mapping| {
        let outputs = contract.outputs(&json!({"status": status}), 1);
        (outputs.available, outputs.terminating)
    };
    assert_eq!(read(Mapping::default()), (2, Some(1)), "no more are available than serve");
    assert_eq!(read(mapping(json!({}))), (2, None), "another kind may mean something else");
    let named = json!({"available": {"cel": "object.status.active - 1"}, "terminating": "status.ends"});
    assert_eq!(read(mapping(named)), (1, None), "it is not reported yet");
}
