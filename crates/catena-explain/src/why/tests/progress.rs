//! Nobody is told to wait for what does not go on by itself.

use serde_json::{Value, json};

use super::{WEB, scene::*};

const ROLLOUT: &str = "argoproj.io/v1alpha1";

#[test]
fn a_rollout_that_was_paused_or_aborted_is_not_told_to_go_on() {
    for (status, reason) in [("Unknown", "RolloutPaused"), ("False", "RolloutAborted")] {
        let conditions = [
            condition("Available", "True", "AvailableReason", ""),
            condition("Progressing", status, reason, "as it says"),
        ];
        let numbers =
            json!({"replicas": 5, "updatedReplicas": 1, "availableReplicas": 5, "conditions": conditions});
        let stopped =
            object(ROLLOUT, "Rollout", "web", Some(WEB), json!({"spec": {"replicas": 5}, "status": numbers}));
        let mut body = not_ready("Degraded", "1 of 5", Value::Null);
        let stalled = condition("Stalled", "True", "Degraded", "1 of 5");
        body["status"]["conditions"].as_array_mut().unwrap().push(stalled);
        let told = explained_exactly(WEB, &[deployment(body), stopped], &calm());
        assert!(told.contains(reason) && told.contains("as it says"), "{told}");
        assert!(!told.contains("reports no obstacle"), "{told}");
    }
}

/// Its status says nothing, or what it said before its operator went down.
#[test]
fn a_child_that_nobody_reports_on_is_not_said_to_make_progress() {
    let unreported = |api_version: &str, kind: &str, status: Value| {
        let blocker = json!({"apiVersion": api_version, "kind": kind, "name": "web", "reason": "NotReported",
            "message": "it has never reported observedGeneration"});
        let child =
            object(api_version, kind, "web", Some(WEB), json!({"spec": {"replicas": 3}, "status": status}));
        let web = deployment(not_ready("Progressing", "0 of 3", blocker));
        ask_exactly(WEB, &[web, child], &calm()).root_cause
    };
    for (api_version, kind, status) in
        [(ROLLOUT, "Rollout", Value::Null), ("apps/v1", "Deployment", json!({}))]
    {
        let cause = unreported(api_version, kind, status).unwrap();
        assert_eq!((cause.object.kind.as_str(), cause.reason.as_str()), (kind, "NotReported"));
    }
    let stale =
        unreported(ROLLOUT, "Rollout", json!({"conditions": [condition("Available", "True", "", "")]}));
    assert_eq!(stale.unwrap().reason, "Progressing");
}

#[test]
fn a_pod_that_completed_is_named_although_it_has_no_problem() {
    let pod = pod("web-x", json!({"phase": "Succeeded"}));
    let cause = ask(WEB, &blocked_by_pod(pod, "PodSucceeded"), &calm()).root_cause.unwrap();
    assert_eq!((cause.object.kind.as_str(), cause.reason.as_str()), ("Pod", "PodSucceeded"));
}

#[test]
fn a_rollout_whose_new_pods_have_to_stay_ready_for_a_time_is_waited_for() {
    let counted = condition("Available", "False", "MinimumReplicasUnavailable", "no minimum availability");
    let going = condition("Progressing", "True", "ReplicaSetUpdated", "");
    let body = json!({"spec": {"replicas": 1, "minReadySeconds": 300}, "status": {
        "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "conditions": [counted, going],
    }});
    let set = json!({"spec": {"replicas": 1}, "status": {"replicas": 1, "readyReplicas": 1}});
    let mut pod = serving("web-x");
    pod.metadata.owner_references.as_mut().unwrap()[0].uid = "ReplicaSet/web".into();
    let objects = [
        deployment(not_ready("Progressing", "0 of 1", Value::Null)),
        object("apps/v1", "Deployment", "web", Some(WEB), body),
        object("apps/v1", "ReplicaSet", "web", Some("Deployment/web"), set),
        pod,
    ];
    for asked in [WEB, "Deployment/web"] {
        let cause = ask_exactly(asked, &objects, &calm()).root_cause.unwrap();
        assert!(cause.is_progress, "{asked}: {}", cause.advice);
    }
}

#[test]
fn below_a_child_that_nobody_reports_on_an_obstacle_is_told() {
    let blocker = json!({"apiVersion": ROLLOUT, "kind": "Rollout", "name": "web", "reason": "NotReported",
        "message": "it has never reported observedGeneration"});
    let web = deployment(not_ready("Progressing", "0 of 3", blocker));
    let body = json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 0}});
    let child = object(ROLLOUT, "Rollout", "web", Some(WEB), body);
    let told = |mut pod: kube::core::DynamicObject| {
        pod.metadata.owner_references.as_mut().unwrap()[0].uid = "Rollout/web".into();
        let cause = ask_exactly(WEB, &[web.clone(), child.clone(), pod], &calm()).root_cause.unwrap();
        (cause.object.to_string(), cause.reason)
    };
    let image = told(waiting("web-x", "ImagePullBackOff", "not found"));
    assert_eq!(image, ("Pod/web-x".into(), "ImagePullBackOff".into()));
    let starting = told(waiting("web-x", "ContainerCreating", ""));
    assert_eq!(starting, ("Rollout/web".into(), "NotReported".into()));
}
