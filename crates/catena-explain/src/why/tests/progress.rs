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

/// A set of two pods with this update strategy, below a deployment that waits for it.
fn updated_by(kind: &str, strategy: &Value, numbers: &Value) -> Vec<kube::core::DynamicObject> {
    let mut body = json!({"spec": {"replicas": 2, "updateStrategy": strategy}, "status": numbers});
    body["status"]["observedGeneration"] = 1.into();
    let web = deployment(not_ready("Progressing", "2 of 2 replicas are serving", Value::Null));
    let pods = ["web-1", "web-2"].map(|name| {
        let mut pod = serving(name);
        pod.metadata.owner_references.as_mut().unwrap()[0].uid = format!("{kind}/web");
        pod
    });
    [&[web, object("apps/v1", kind, "web", Some(WEB), body)][..], &pods].concat()
}

#[test]
fn pods_that_their_update_strategy_keeps_are_not_waited_for() {
    let stateful = json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 0});
    let daemons = json!({"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 2});
    let by_hand = json!({"type": "OnDelete"});
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    for (kind, strategy, numbers, reason, advice) in [
        ("StatefulSet", &by_hand, &stateful, "OnDelete", "kubectl -n shop delete pods"),
        ("DaemonSet", &by_hand, &daemons, "OnDelete", "kubectl -n shop delete pods"),
        ("StatefulSet", &partition, &stateful, "Partition", "lower"),
    ] {
        let (objects, set) = (updated_by(kind, strategy, numbers), format!("{kind}/web"));
        let cause = ask_exactly(WEB, &objects, &calm()).root_cause.unwrap();
        assert_eq!((cause.object.to_string(), cause.reason.as_str()), (set.clone(), reason));
        assert!(cause.meaning.contains('2') && cause.advice.contains(advice), "{cause:?}");
        // The set is ready by its own numbers, and is told beside.
        let answer = ask_exactly(&set, &objects, &calm());
        assert!(answer.well && answer.remarks.join("; ").contains(&cause.meaning), "{answer:?}");
    }
}

#[test]
fn a_set_whose_pods_are_updated_or_still_to_be_made_is_not_said_to_keep_former_ones() {
    let by_hand = json!({"type": "OnDelete"});
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
    for (strategy, numbers) in [
        (&by_hand, json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2})),
        (&by_hand, json!({"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1})),
        (&partition, json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 0})),
    ] {
        let objects = updated_by("StatefulSet", strategy, &numbers);
        let cause = ask_exactly(WEB, &objects, &calm()).root_cause.unwrap();
        assert!(cause.is_progress || cause.reason == "Progressing", "{numbers}: {cause:?}");
    }
}

#[test]
fn a_pod_of_a_former_template_that_is_not_replaced_is_to_be_deleted() {
    let told = |policy: &str, of: &str| {
        let spec = json!({"replicas": 1, "podManagementPolicy": policy});
        let status = json!({"observedGeneration": 1, "replicas": 1, "updateRevision": "db-new"});
        let set = object("apps/v1", "StatefulSet", "db", None, json!({"spec": spec, "status": status}));
        let mut pod = waiting("db-0", "ImagePullBackOff", "not found");
        pod.metadata.owner_references.as_mut().unwrap()[0].uid = "StatefulSet/db".into();
        pod.metadata.labels = Some([("controller-revision-hash".into(), of.into())].into());
        let objects = [set, pod];
        let [of_set, of_pod] =
            ["StatefulSet/db", "Pod/db-0"].map(|asked| ask_exactly(asked, &objects, &calm()).root_cause);
        assert_eq!(of_set, of_pod);
        let cause = of_set.unwrap();
        format!("{}: {}", cause.meaning, cause.advice)
    };
    let former = told("OrderedReady", "db-old");
    assert!(former.starts_with("cannot pull its image") && former.contains("StatefulSet/db"), "{former}");
    assert!(former.contains("kubectl -n shop delete pod db-0"), "{former}");
    for (policy, of) in [("OrderedReady", "db-new"), ("Parallel", "db-old")] {
        assert!(told(policy, of).contains("correct the image"), "{policy}, {of}");
    }
}
