//! What an explanation asks the server for.

use catena_cluster::{
    BASIC_DEPLOYMENTS, Target,
    protection::{COMPONENT, NAME},
    testing::serving,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::why::explanation;

const CONTROLLERS: [&str; 6] = [
    "backup-controller",
    "basic-deployment-controller",
    "basic-replicaset-controller",
    "command-binder",
    "command-reaper",
    "command-runner",
];
/// The kinds of a server cost two requests more.
const MAX_REQUESTS: usize = 26 - 2;

fn not_ready(api_version: &str, kind: &str, owner: &Value) -> Value {
    let conditions =
        json!([{"type": "Ready", "status": "False", "reason": "Progressing", "message": "0 of 1"}]);
    let child = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "name": "web"});
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": "web", "namespace": "shop", "uid": kind, "ownerReferences": owner},
        "spec": {"replicas": 1},
        "status": {"child": child, "conditions": conditions},
    })
}

fn owner(kind: &str) -> Value {
    json!([{"apiVersion": "catena.dev/v1alpha1", "kind": kind, "name": "web", "uid": kind}])
}

/// What is in the Lease, the `ConfigMap` or the Deployment of a controller.
fn of_controller(name: &str, is_up: bool) -> Value {
    let labels = json!({NAME: name, COMPONENT: name});
    let annotations = json!({"catena.dev/settings-version": "v1"});
    let renewed = if is_up { Timestamp::now() } else { Timestamp::UNIX_EPOCH };
    json!({
        "metadata": {"name": name, "namespace": "catena-system", "labels": labels, "annotations": annotations},
        "spec": {
            "holderIdentity": format!("{name}-1"), "renewTime": renewed.to_string(),
            "selector": {"matchLabels": labels}, "template": {},
        },
        "status": {"availableReplicas": i32::from(is_up), "updatedReplicas": 1, "replicas": 1},
    })
}

/// A pod, which waits for its image unless it is ready.
fn pod(metadata: &Value, is_ready: bool) -> Value {
    let image = json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}});
    let state = if is_ready { json!({"running": {}}) } else { image };
    let container = json!({"name": "main", "ready": is_ready, "state": state});
    let phase = if is_ready { "Running" } else { "Pending" };
    json!({
        "metadata": metadata, "spec": {"nodeName": "n1"},
        "status": {"phase": phase, "containerStatuses": [container]},
    })
}

/// Each controller has a Lease, a Deployment, a `ConfigMap` and a pod, and the pod of the set is told by its owners as the
/// blocker.
fn server(uri: &str, is_up: bool) -> Option<Value> {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let plural = path.rsplit('/').next()?;
    let items = match plural {
        "web" if path.contains("/basicdeployments/") => {
            return Some(not_ready("catena.dev/v1alpha1", "BasicDeployment", &Value::Null));
        }
        "web" if path.contains("/basicreplicasets/") => {
            return Some(not_ready("catena.dev/v1alpha1", "BasicReplicaSet", &owner("BasicDeployment")));
        }
        "web" | "shop" | "version" => return None,
        "basicreplicasets" => vec![not_ready("", "BasicReplicaSet", &owner("BasicDeployment"))],
        "pods" if query.contains("replicaset-uid") => {
            let owners = owner("BasicReplicaSet");
            vec![pod(
                &json!({"name": "web-1", "namespace": "shop", "uid": "p", "ownerReferences": owners}),
                false,
            )]
        }
        "leases" | "configmaps" | "deployments" => {
            CONTROLLERS.map(|name| of_controller(name, is_up)).to_vec()
        }
        "pods" if path.contains("/catena-system/") => {
            let of = |name: &str| {
                let labels = json!({NAME: name, COMPONENT: name});
                json!({"name": format!("{name}-1"), "namespace": "catena-system", "uid": name, "labels": labels})
            };
            CONTROLLERS.map(|name| pod(&of(name), is_up)).to_vec()
        }
        _ => vec![],
    };
    Some(json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
}

/// An answer, in which the deployment is held for a backup in another namespace.
fn held(uri: &str, mut answer: Value) -> Value {
    if uri.contains("/basicdeployments/") {
        let report = json!({"uid": "BasicDeployment", "backup": "Copy backups/web"}).to_string();
        answer["metadata"]["annotations"] = json!({"catena.dev/backup-status": report});
        answer["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    answer
}

#[tokio::test]
async fn events_of_the_place_of_a_backup_that_were_not_all_read_are_told() {
    let (cluster, _) = serving(|uri| {
        let mut answer = server(uri, true)?;
        if uri.contains("/namespaces/backups/events") {
            answer["metadata"]["continue"] = "more".into();
        }
        Some(held(uri, answer))
    });
    let target = Target { kind: BASIC_DEPLOYMENTS.into(), name: "web".into() };
    let told = explanation(&cluster, &target).await.unwrap().not_seen;
    assert!(told.iter().any(|gap| gap.what == "some Events in backups"), "{told:?}");
}

/// Pods that have waited for a node for long, each with a claim.
fn pods_with_claims() -> Vec<Value> {
    let of = |number: u32| {
        let (name, claim) = (format!("web-{number}"), format!("data-{number}"));
        json!({
            "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": owner("BasicReplicaSet"),
                "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]},
            "status": {"phase": "Pending"},
        })
    };
    (0..16).map(of).collect()
}

#[tokio::test]
async fn pods_that_wait_for_their_claims_cost_few_requests_more() {
    let (cluster, requests) = serving(|uri| {
        let mut answer = server(uri, true)?;
        if uri.contains("replicaset-uid") {
            answer["items"] = pods_with_claims().into();
        }
        Some(held(uri, answer)).filter(|_| !uri.contains("/persistentvolumeclaims/"))
    });
    let asked = Target { kind: "basicreplicasets.catena.dev".into(), name: "web".into() };
    let answer = explanation(&cluster, &asked).await.unwrap();
    assert_eq!(answer.root_cause.unwrap().object.name, "data-0");
    let requests = requests.lock().unwrap().clone();
    let asked_for = |part: &str| requests.iter().filter(|uri| uri.contains(part)).count();
    assert_eq!((asked_for("/persistentvolumeclaims/"), asked_for("/backups/events")), (1, 1));
    assert!(requests.len() <= MAX_REQUESTS, "{}: {requests:#?}", requests.len());
}

#[tokio::test]
async fn an_explanation_costs_few_requests_and_none_twice() {
    for (is_up, logs) in [(true, 0), (false, CONTROLLERS.len())] {
        let (cluster, requests) = serving(move |uri| server(uri, is_up));
        let target = Target { kind: BASIC_DEPLOYMENTS.into(), name: "web".into() };
        let answer = explanation(&cluster, &target).await.unwrap();
        assert_eq!(answer.root_cause.unwrap().reason, "ImagePullBackOff");
        let mut requests = requests.lock().unwrap().clone();
        let number = requests.len();
        assert!(number <= MAX_REQUESTS, "{number}: {requests:#?}");
        assert_eq!(requests.iter().filter(|uri| uri.contains("/log")).count(), logs, "{requests:#?}");
        requests.sort();
        requests.dedup();
        assert_eq!(requests.len(), number, "{requests:#?}");
    }
}

#[tokio::test]
async fn the_log_of_a_controller_that_runs_and_reports_nothing_is_quoted() {
    let (cluster, requests) = serving(|uri| {
        if uri.contains("/pods/basic-deployment-controller-1/log") {
            let line = json!({"level": "ERROR", "message": "its watch is refused"});
            return Some(Value::String(line.to_string()));
        }
        let mut answer = server(uri, true)?;
        if uri.contains("/basicdeployments/") {
            let pending = json!({"type": "Ready", "status": "Unknown", "reason": "Pending"});
            answer["status"] = json!({"conditions": [pending]});
            answer["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        Some(answer).filter(|_| !uri.contains("basicreplicasets"))
    });
    let target = Target { kind: BASIC_DEPLOYMENTS.into(), name: "web".into() };
    let answer = explanation(&cluster, &target).await.unwrap();
    let cause = answer.root_cause.unwrap();
    let said = "the last error in the log of basic-deployment-controller: its watch is refused";
    assert_eq!((&*cause.reason, &*cause.message), ("NotObserved", said));
    let logs = requests.lock().unwrap().iter().filter(|uri| uri.contains("/log")).count();
    assert_eq!(logs, 1);
}
