//! Scenes of pods: obstacles on every node, and nodes that do not answer.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{
    scene::*,
    scenes::{Scene, assert_right},
};
use crate::{
    object::Identity,
    why::{
        facts::{Preemption, Surroundings},
        relate::alone,
        related::Related,
    },
};

const WEB: &str = "BasicDeployment/web";

pub(super) fn wide(api_version: &str, kind: &str, name: &str, mut body: Value) -> DynamicObject {
    body["metadata"] = json!({"namespace": null});
    object(api_version, kind, name, None, body)
}

fn node(name: &str, body: Value) -> DynamicObject {
    wide("v1", "Node", name, body)
}

fn dead(name: &str) -> DynamicObject {
    let unknown = condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.");
    node(name, json!({"status": {"conditions": [unknown]}}))
}

pub(super) fn with(
    found: Vec<DynamicObject>,
    nodes: Vec<DynamicObject>,
    missing: Vec<Identity>,
) -> Surroundings {
    let alone = |objects: Vec<DynamicObject>| objects.into_iter().filter_map(alone).collect();
    let related = Related { found: alone(found), nodes: alone(nodes), missing, ..Related::default() };
    Surroundings { related, ..calm() }
}

fn on(mut pod: DynamicObject, node: &str) -> DynamicObject {
    pod.data["spec"] = json!({"nodeName": node});
    pod
}

fn unready() -> DynamicObject {
    let conditions = [condition("Ready", "False", "NodeNotReady", "")];
    pod("web-x", json!({"phase": "Running", "conditions": conditions}))
}

fn leaving() -> DynamicObject {
    let metadata = json!({"deletionTimestamp": "2026-01-01T00:05:30Z", "deletionGracePeriodSeconds": 30});
    object("v1", "Pod", "web-x", Some("BasicReplicaSet/web"), json!({"metadata": metadata}))
}

/// A deployment with a pod, of which the statuses say nothing yet.
fn chain(pod: DynamicObject) -> Vec<DynamicObject> {
    let body = || not_ready("Progressing", "2 of 3 replicas are serving", Value::Null);
    vec![deployment(body()), set(body()), pod]
}

#[test]
fn a_pod_leads_to_its_node() {
    let gone =
        Identity { api_version: "v1".into(), kind: "Node".into(), name: "n1".into(), ..Identity::default() };
    let unhealthy = condition("Ready", "False", "KubeletNotReady", "container runtime is down");
    let unhealthy = node("n1", json!({"status": {"conditions": [unhealthy]}}));
    let well = vec![deployment(ready()), set(ready()), serving("web-1"), on(leaving(), "n1")];
    assert_right(&[
        Scene {
            name: "a node that has stopped reporting",
            asked: WEB,
            objects: chain(on(unready(), "n1")),
            surroundings: with(vec![dead("n1")], vec![], vec![]),
            says: "BasicDeployment/web is not ready: Node/n1 has stopped reporting, and its pods with it (NodeStatusUnknown",
            advises: "kubectl describe node n1",
        },
        Scene {
            name: "a node that says that it is not ready",
            asked: WEB,
            objects: chain(on(unready(), "n1")),
            surroundings: with(vec![unhealthy], vec![], vec![]),
            says: "BasicDeployment/web is not ready: Node/n1 is not ready, and its pods with it (KubeletNotReady",
            advises: "kubectl describe node n1",
        },
        Scene {
            name: "a pod that hangs on it",
            asked: "Pod/web-x",
            objects: chain(on(leaving(), "n1")),
            surroundings: with(vec![dead("n1")], vec![], vec![]),
            says: "Pod/web-x is not gone: Node/n1 has stopped reporting",
            advises: "delete the Node object",
        },
        Scene {
            name: "a pod that hangs on it while others serve",
            asked: WEB,
            objects: well,
            surroundings: with(vec![dead("n1")], vec![], vec![]),
            says: "BasicDeployment/web is ready: 3/3 serve.",
            advises: "Pod/web-x has been shutting down for 5m: Node/n1 has stopped reporting",
        },
        Scene {
            name: "a pod whose node is gone",
            asked: "Pod/web-x",
            objects: chain(on(leaving(), "n1")),
            surroundings: with(vec![], vec![], vec![gone]),
            says: "Pod/web-x was on Node/n1, which no longer exists",
            advises: "--force",
        },
    ]);
}

/// Application teams usually may not read nodes.
#[test]
fn a_pod_names_its_node_also_where_nodes_may_not_be_read() {
    let conditions = [condition("Ready", "False", "", ""), condition("ContainersReady", "True", "", "")];
    let unready = on(pod("web-x", json!({"phase": "Running", "conditions": conditions})), "n1");
    let cause = ask(WEB, &blocked_by_pod(unready, "NodeNotReady"), &calm()).root_cause.unwrap();
    assert_eq!(cause.message, "its node \"n1\" is not ready");
    assert_eq!(
        (cause.reason.as_str(), cause.meaning.as_str()),
        ("NodeNotReady", "is on a node that is not ready")
    );
    assert!(cause.advice.contains("the node that the message names"), "{}", cause.advice);
}

pub(super) fn unschedulable(message: &str) -> Vec<DynamicObject> {
    let conditions = [condition("PodScheduled", "False", "Unschedulable", message)];
    blocked_by_pod(pod("web-x", json!({"phase": "Pending", "conditions": conditions})), "Unschedulable")
}

#[test]
fn each_obstacle_to_scheduling_has_an_advice_of_its_own() {
    let cordoned = node("n1", json!({"spec": {"unschedulable": true}}));
    let tainted = |key: &str| node("n2", json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}));
    let says = |message: &'static str, says, advises, nodes| Scene {
        name: message,
        asked: WEB,
        objects: unschedulable(message),
        surroundings: with(vec![], nodes, vec![]),
        says,
        advises,
    };
    assert_right(&[
        says(
            "0/1 nodes are available: 1 node(s) were unschedulable.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 is cordoned",
            "kubectl uncordon n1",
            vec![cordoned],
        ),
        says(
            "0/1 nodes are available: 1 node(s) had untolerated taint(s) {dedicated: db}.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 has the taint dedicated",
            "kubectl taint nodes n2 dedicated-",
            vec![tainted("dedicated")],
        ),
        says(
            "0/1 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 has the taint node-role.kubernetes.io/control-plane",
            "add a node for other pods",
            vec![tainted("node-role.kubernetes.io/control-plane")],
        ),
        says(
            "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 has the taint node.kubernetes.io/disk-pressure",
            "see in the conditions of the node why it has the taint: kubectl describe node n2",
            vec![tainted("node.kubernetes.io/disk-pressure")],
        ),
        says(
            "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 does not answer",
            "kubectl describe node n2",
            vec![tainted("node.kubernetes.io/unreachable")],
        ),
        says(
            "0/3 nodes are available: 3 Insufficient memory.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 3 have too little memory",
            "request less memory",
            vec![],
        ),
        says(
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 3 do not match its node selector",
            "node selector in the pod template",
            vec![],
        ),
        says(
            "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 3 do not match its pod affinity",
            "relax the affinity",
            vec![],
        ),
        says(
            "0/2 nodes are available: 2 Too many pods.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 2 have the maximum number of pods",
            "add a node",
            vec![],
        ),
    ]);
}

/// The taint protects the control plane from the pods of others.
#[test]
fn nobody_is_told_to_remove_the_taint_of_a_control_plane() {
    let advice = |message: &str, nodes: Vec<DynamicObject>| {
        ask(WEB, &unschedulable(message), &with(vec![], nodes, vec![])).root_cause.unwrap().advice
    };
    let control = |key: &str| node("n1", json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}));
    let unnamed = "0/1 nodes are available: 1 node(s) had untolerated taint(s).";
    for key in ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"] {
        let named = format!("0/1 nodes are available: 1 node(s) had untolerated taint(s) {{{key}: }}.");
        for advice in [advice(&named, vec![]), advice(unnamed, vec![control(key)])] {
            assert!(advice.contains("tolerate") && !advice.contains("remove"), "{advice}");
            assert!(!advice.contains("kubectl taint"), "{advice}");
        }
    }
    // It may be one.
    let advice = advice(unnamed, vec![]);
    assert!(advice.contains("tolerate") && !advice.contains("remove"), "{advice}");
}

/// Only the first pages of the nodes of a large cluster are read.
#[test]
fn nodes_that_were_not_read_are_not_said_to_lack_a_label() {
    let says = |unread: bool, selector: &Value| {
        let mut objects = unschedulable(
            "0/2500 nodes are available: 2500 node(s) had untolerated taint(s). preemption: 0/2500 nodes are available.",
        );
        objects[2].data["spec"] = json!({"nodeSelector": selector});
        let taints = json!({"taints": [{"key": "dedicated", "effect": "NoSchedule"}]});
        let mut surroundings = with(vec![], vec![node("n1", json!({"spec": taints}))], vec![]);
        surroundings.related.has_unread_nodes = unread;
        ask(WEB, &objects, &surroundings).root_cause.unwrap().meaning
    };
    let unread = "fits on no node: 1 has the taint dedicated, 2499 were not looked at";
    assert_eq!(says(true, &Value::Null), unread);
    assert_eq!(
        says(true, &json!({"pool": "db"})),
        "fits on no node: 1 does not match its node selector, 2499 were not looked at"
    );
    // The nodes have changed since the scheduler looked at them.
    let changed = "fits on no node: 2499 have a taint that it does not tolerate, 1 has the taint dedicated";
    assert_eq!(says(false, &Value::Null), changed);
    let selected =
        "fits on no node: 2499 have a taint that it does not tolerate, 1 does not match its node selector";
    assert_eq!(says(false, &json!({"pool": "db"})), selected);
}

/// Present schedulers name no taints, and count them also for nodes that the pod does not ask for.
#[test]
fn cordons_and_taints_are_counted_for_the_nodes_that_a_pod_selects() {
    let labelled = |name: &str, spec: Value| {
        let mut node = node(name, json!({"spec": spec}));
        node.metadata.labels = Some([("pool".to_owned(), "db".to_owned())].into());
        node
    };
    let taint = |key: &str| json!({"taints": [{"key": key, "value": "yes", "effect": "NoSchedule"}]});
    let nodes = vec![
        labelled("n1", json!({"unschedulable": true})),
        labelled("n2", taint("dedicated")),
        labelled("n3", taint("gpu")),
        node("control", json!({"spec": taint("node-role.kubernetes.io/control-plane")})),
    ];
    let message = "0/9 nodes are available: 1 node(s) were unschedulable, 2 node(s) had untolerated taint(s), 6 node(s) didn't match Pod's node affinity/selector. preemption: 0/9 nodes are available.";
    let mut objects = unschedulable(message);
    objects[2].data["spec"] = json!({
        "nodeSelector": {"pool": "db"},
        "tolerations": [{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}],
    });
    assert_right(&[
        Scene {
            name: "with the nodes",
            asked: WEB,
            objects,
            surroundings: with(vec![], nodes, vec![]),
            says: "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 is cordoned, 1 has the taint dedicated, 7 do not match its node selector",
            advises: "kubectl uncordon n1; tolerate the taint in the pod template, or remove it: kubectl taint nodes n2 dedicated-",
        },
        Scene {
            name: "without the right to read nodes",
            asked: WEB,
            objects: unschedulable("0/2 nodes are available: 2 node(s) had untolerated taint(s)."),
            surroundings: calm(),
            says: "BasicDeployment/web is not ready: Pod/web-x fits on no node: 2 have a taint that it does not tolerate",
            advises: "add a node: kubectl describe nodes lists the taints",
        },
    ]);
}

#[test]
fn a_pod_that_had_to_make_room_is_named_with_the_one_that_took_its_place() {
    let said = |time: &str| {
        let by = "bank/ledger-0".to_owned();
        let preemptions = vec![Preemption { pod: "web-1".into(), by, at: time.parse().ok() }];
        let objects = unschedulable("0/3 nodes are available: 3 Insufficient cpu.");
        ask(WEB, &objects, &Surroundings { preemptions, ..calm() }).remarks.join("; ")
    };
    let told = said(THEN);
    let expected = "Pod/web-1 had to make room for Pod bank/ledger-0 of a higher priority 3m ago";
    assert!(told.starts_with(expected), "{told}");
    // Its successor is created while it shuts down.
    assert!(said("2026-01-01T00:06:15Z").starts_with("Pod/web-1 had to make room"));
    // An older one was followed by a time in which every pod had a node.
    assert_eq!(said("2025-12-31T23:20:00Z"), "");
}
