use jiff::Timestamp;
use operator_kit::run::Validate;
use serde_json::json;

use super::*;
use crate::Settings;

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
    let paused = |is_paused: bool| {
        let child = json!({"spec": {"paused": is_paused}, "status": {}});
        example("deployment").children[0].contract.outputs(&child, 1).paused
    };
    assert_eq!(paused(true).map(|pause| pause.reason), Some("DeploymentPaused".into()));
    assert_eq!(paused(false), None);
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

/// The settings of an example under examples/children.
fn example(name: &str) -> Settings {
    let file = format!("{}/../../examples/children/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let settings: Settings = serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!((settings.validate(), settings.warnings()), (Ok(()), Vec::new()), "{name}");
    settings
}

/// Whether the kind of an example is ready with this spec and status, in generation 2.
fn is_ready(name: &str, replicas: i32, status: &Value) -> bool {
    let child = json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas}, "status": status});
    let outputs = example(name).children[0].contract.outputs(&child, 2);
    assert_eq!(outputs.problem, None, "{name}: {child}");
    outputs.ready
}

#[test]
fn a_restart_of_each_example_is_another_template_so_that_no_count_of_before_can_prove_it() {
    for name in ["deployment", "statefulset", "rollout"] {
        let token = example(name).children[0].contract.contract.restarted_at.clone();
        let place = token.map(|token| token.to_string());
        let expected = "spec.template.metadata.annotations['catena.dev/restartedAt']";
        assert_eq!(place.as_deref(), Some(expected), "{name}");
    }
}

#[test]
fn a_new_child_of_each_example_has_not_reported_anything_and_breaks_nothing() {
    for name in ["deployment", "replicaset", "statefulset", "rollout", "job-replicas"] {
        let spec = json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}}});
        let child = json!({"metadata": {"name": "web"}, "spec": spec});
        let outputs = example(name).children[0].contract.outputs(&child, 1);
        let reported = (outputs.ready, outputs.observed_generation, outputs.problem);
        assert_eq!(reported, (false, None, None), "{name}");
    }
}

#[test]
fn a_deployment_is_ready_without_a_pod_of_an_older_template() {
    let is_ready = |replicas, status: Value| is_ready("deployment", replicas, &status);
    let done = json!({"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
    assert!(is_ready(1, done));
    // One old pod serves, and the new one cannot be pulled: each number reaches what is wanted.
    let bad = json!({"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
    assert!(!is_ready(1, bad));
    let surplus = json!({"replicas": 3, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 3});
    assert!(!is_ready(2, surplus));
    assert!(
        !is_ready(1, json!({"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1})),
        "not for long enough"
    );
    assert!(is_ready(0, json!({"observedGeneration": 2})), "a count of zero is left out");
}

#[test]
fn a_deployment_tells_its_deadline_and_pods_that_cannot_be_created() {
    let conditions = json!([
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"},
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"},
    ]);
    let child =
        json!({"metadata": {"name": "web"}, "spec": {"replicas": 1}, "status": {"conditions": conditions}});
    let outputs = example("deployment").children[0].contract.outputs(&child, 2);
    let stalled = Stalled { reason: "ProgressDeadlineExceeded".into(), message: "late".into() };
    assert_eq!((outputs.stalled, outputs.problem), (Some(stalled), None));
    let blocker = outputs.blocked_by.unwrap();
    assert_eq!((&*blocker.kind, &*blocker.name, &*blocker.message), ("Deployment", "web", "quota"));
}

#[test]
fn a_stateful_set_is_ready_when_all_its_pods_have_the_wanted_revision() {
    let status = |updated: Option<i32>, available| {
        // After a step back, the current revision is the wanted one at once.
        json!({
            "currentRevision": "b", "updateRevision": "b", "replicas": 2, "readyReplicas": 2,
            "updatedReplicas": updated, "availableReplicas": available,
        })
    };
    assert!(is_ready("statefulset", 2, &status(Some(2), 2)));
    assert!(!is_ready("statefulset", 2, &status(Some(1), 2)), "a pod of the revision before still serves");
    assert!(
        !is_ready("statefulset", 2, &status(None, 2)),
        "0 is left out, and terminating pods do not count"
    );
    assert!(!is_ready("statefulset", 2, &status(Some(2), 1)));
    let by_hand = json!({
        "currentRevision": "a", "updateRevision": "b", "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2,
    });
    assert!(is_ready("statefulset", 2, &by_hand), "with OnDelete, the current revision never changes");
}

#[test]
fn a_replica_set_is_another_one_for_each_rendering() {
    let settings = example("replicaset");
    let mut deployment = crate::fixtures::deployment();
    let mut name = |image: &str| {
        deployment.spec.parameters = [("image".to_owned(), image.to_owned())].into();
        let rendered = crate::desired::render(&deployment, &settings).unwrap();
        let object = rendered.object;
        let labels = &object["spec"]["template"]["metadata"]["labels"];
        assert_eq!(&object["spec"]["selector"]["matchLabels"], labels);
        object["metadata"]["name"].as_str().unwrap().to_owned()
    };
    assert_ne!(name("a"), name("b"));
    assert_eq!(name("a"), name("a"));
    let status = json!({"replicas": 2, "fullyLabeledReplicas": 2, "availableReplicas": 2});
    assert!(is_ready("replicaset", 2, &status));
    assert!(!is_ready(
        "replicaset",
        2,
        &json!({"replicas": 2, "fullyLabeledReplicas": 1, "availableReplicas": 2})
    ));
}

#[test]
fn the_examples_give_autoscalers_one_selector_of_their_pods() {
    let labels: Map<_, _> =
        ["e", "b", "a", "d", "c"].map(|name| (name.to_owned(), "x".into())).into_iter().collect();
    for name in ["deployment", "replicaset", "statefulset", "rollout", "job-replicas"] {
        let child = json!({
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}},
            "status": {"selector": "a=x,b=x,c=x,d=x,e=x"},
        });
        let outputs = example(name).children[0].contract.outputs(&child, 1);
        // A map has another order each time, and each other text would be another status.
        assert_eq!(outputs.selector.as_deref(), Some("a=x,b=x,c=x,d=x,e=x"), "{name}");
    }
}

#[test]
fn the_examples_say_where_their_pods_are() {
    let selector = |name: &str, status: Value| {
        let labels = json!({"app.kubernetes.io/name": "web"});
        let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}});
        let child = json!({"metadata": {"name": "web"}, "spec": spec, "status": status});
        example(name).children[0].contract.outputs(&child, 1).pods
    };
    let own = Some("app.kubernetes.io/name=web".to_owned());
    assert_eq!(selector("deployment", json!({})), own);
    assert_eq!(selector("replicaset", json!({})), own);
    let of_revision = Some("app.kubernetes.io/name=web,controller-revision-hash=web-2".to_owned());
    assert_eq!(selector("statefulset", json!({"updateRevision": "web-2"})), of_revision);
    assert_eq!(selector("statefulset", json!({})), None, "its revision is not known yet");
    // With blueGreen, the reported selector is that of the pods of the active Service.
    let active = "app.kubernetes.io/name=web,rollouts-pod-template-hash=a";
    let of_hash = Some("app.kubernetes.io/name=web,rollouts-pod-template-hash=c".to_owned());
    assert_eq!(selector("rollout", json!({"selector": active, "currentPodHash": "c"})), of_hash);
    assert_eq!(Mapping::default().outputs(&json!({"status": {"selector": "a=b"}}), 1).pods, None);
}

#[test]
fn the_pod_of_a_job_that_is_not_ready_is_looked_for_instead_of_the_job() {
    let outputs = |reason: &str| {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "web-1", "reason": reason});
        let status = json!({"active": 0, "observedGeneration": 2, "selector": "of=web", "blockedBy": job});
        let child = json!({"metadata": {"name": "web"}, "spec": {"replicas": 1}, "status": status});
        example("job-replicas").children[0].contract.outputs(&child, 2)
    };
    let waiting = outputs("WorkerNotReady");
    let pods = Some("of=web".to_owned());
    assert_eq!((waiting.blocked_by, waiting.pods, waiting.problem), (None, pods, None));
    let ended = outputs("WorkerEnded");
    assert_eq!(ended.blocked_by.map(|blocker| blocker.name), Some("web-1".into()));
    let ready = json!({"spec": {"replicas": 1}, "status": {"active": 1, "selector": "of=web"}});
    let outputs = example("job-replicas").children[0].contract.outputs(&ready, 2);
    assert_eq!((outputs.blocked_by, outputs.problem), (None, None));
}

#[test]
fn a_rollout_is_ready_when_the_new_pods_are_the_stable_ones() {
    let status = |phase: &str, stable: &str| {
        json!({
            "phase": phase, "currentPodHash": "b", "stableRS": stable, "observedGeneration": "2",
            "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "message": "why",
        })
    };
    assert!(is_ready("rollout", 2, &status("Healthy", "b")));
    assert!(!is_ready("rollout", 2, &status("Healthy", "a")));
    assert!(!is_ready("rollout", 2, &status("Paused", "b")));
    let child = json!({"spec": {"replicas": 2}, "status": status("Degraded", "b")});
    let outputs = example("rollout").children[0].contract.outputs(&child, 2);
    assert_eq!(outputs.observed_generation, Some(2));
    assert_eq!(outputs.stalled.map(|stalled| stalled.message), Some("why".into()));
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
