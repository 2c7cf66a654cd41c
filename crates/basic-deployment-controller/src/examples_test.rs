//! The examples under `examples/children`: what is read of each kind by its contract.

use operator_kit::run::Validate;
use replica_contract::{Mapping, Stalled};
use serde_json::{Map, Value, json};

use crate::Settings;

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
    assert_eq!((outputs.stalled.map(|stalled| stalled.message), outputs.paused), (Some("why".into()), None));
    let child = json!({"spec": {"replicas": 2}, "status": status("Paused", "a")});
    let outputs = example("rollout").children[0].contract.outputs(&child, 2);
    assert_eq!(outputs.stalled, None);
    let pause = outputs.paused.unwrap();
    assert_eq!(pause.reason, "RolloutPaused");
    assert_eq!(pause.message, "why; kubectl argo rollouts promote goes on to the next step");
    let child = json!({"spec": {"replicas": 2, "paused": true}, "status": status("Paused", "a")});
    let pause = example("rollout").children[0].contract.outputs(&child, 2).paused.unwrap();
    assert!(pause.message.contains("set it to false"), "{}", pause.message);
}

#[test]
fn a_deployment_tells_its_pause() {
    let paused = |is_paused: bool| {
        let child = json!({"spec": {"paused": is_paused}, "status": {}});
        example("deployment").children[0].contract.outputs(&child, 1).paused
    };
    assert_eq!(paused(true).map(|pause| pause.reason), Some("DeploymentPaused".into()));
    assert_eq!(paused(false), None);
}
