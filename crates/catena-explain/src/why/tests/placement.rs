//! Scenes of pods: obstacles on every node, and nodes that do not answer.

use catena_cluster::Identity;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{
    scene::*,
    scenes::{Scene, assert_right},
};
use crate::why::{
    facts::{Related, Surroundings, Warning},
    read::alone,
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
    object(
        "v1",
        "Pod",
        "web-x",
        Some("BasicReplicaSet/web"),
        json!({"metadata": metadata, "status": {"startTime": THEN}}),
    )
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
    let pods = ["web-1", "web-2", "web-3"].map(serving);
    let mut kept = leaving();
    kept.metadata.finalizers = Some(vec!["example.com/drain".into()]);
    let mut ended = kept.clone();
    ended.data["status"]["phase"] = "Failed".into();
    let well = [&[deployment(ready()), set(ready())][..], &pods, &[on(leaving(), "n1")]].concat();
    let serves = [&well[..4], &[on(serving("web-x"), "n1")]].concat();
    let unready_node = unhealthy.clone();
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
            advises: "Pod/web-x has been shutting down for 5m on Node/n1, which is not ready (NodeStatusUnknown)",
        },
        Scene {
            name: "a pod that counts as ready on it",
            asked: WEB,
            objects: serves.clone(),
            surroundings: with(vec![unready_node], vec![], vec![]),
            says: "BasicDeployment/web is ready: 3/3 serve.",
            advises: "Pod/web-x counts as ready on Node/n1, which is not ready (KubeletNotReady)",
        },
        Scene {
            name: "a pod that counts as ready on one that is gone",
            asked: WEB,
            objects: serves,
            surroundings: with(vec![], vec![], vec![gone.clone()]),
            says: "BasicDeployment/web is ready: 3/3 serve.",
            advises: "Pod/web-x counts as ready on Node/n1, which no longer exists",
        },
        Scene {
            name: "a pod whose node is gone",
            asked: "Pod/web-x",
            objects: chain(on(leaving(), "n1")),
            surroundings: with(vec![], vec![], vec![gone.clone()]),
            says: "Pod/web-x was on Node/n1, which no longer exists",
            advises: "--force",
        },
        Scene {
            name: "the same with a finalizer, before the garbage collector has ended it",
            asked: "Pod/web-x",
            objects: chain(on(kept, "n1")),
            surroundings: with(vec![], vec![], vec![gone.clone()]),
            says: "Pod/web-x was on Node/n1, which no longer exists",
            advises: "--force",
        },
        Scene {
            name: "one that it has ended, and that a finalizer keeps",
            asked: "Pod/web-x",
            objects: chain(on(ended, "n1")),
            surroundings: with(vec![], vec![], vec![gone]),
            says: "Pod/web-x is being deleted and is held by the finalizer example.com/drain",
            advises: "find the controller that removes the finalizer",
        },
    ]);
}

#[test]
fn a_pod_that_hangs_on_a_node_that_answers_is_told_with_its_warnings() {
    let ready = condition("Ready", "True", "KubeletReady", "");
    let answers = node("n1", json!({"status": {"conditions": [ready]}}));
    let warning = Warning {
        about: "Pod/web-x".into(),
        reason: "FailedKillPod".into(),
        message: "the volume is busy".into(),
        at: THEN.parse().ok(),
        ..Warning::default()
    };
    let surroundings = Surroundings { warnings: vec![warning], ..with(vec![answers], vec![], vec![]) };
    let answer = ask("Pod/web-x", &chain(on(leaving(), "n1")), &surroundings);
    let says = "Pod/web-x has been shutting down for longer than its grace period of 30s, although Node/n1 answers (ShuttingDown for 5m).";
    assert_eq!(answer.sentence, says);
    let cause = answer.root_cause.unwrap();
    assert_eq!(cause.message, "Warning FailedKillPod (3m ago): the volume is busy");
    assert!(cause.advice.contains("describe pod/web-x"), "{}", cause.advice);
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
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 node(s) were unschedulable; n1 is cordoned (",
            "kubectl uncordon n1",
            vec![cordoned],
        ),
        says(
            "0/1 nodes are available: 1 node(s) had untolerated taint(s) {dedicated: db}.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 node(s) had untolerated taint(s) {dedicated: db}; n2 has the taint dedicated (",
            "tolerate the taint in the pod template",
            vec![tainted("dedicated")],
        ),
        says(
            "0/1 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }; n2 has the taint node-role.kubernetes.io/control-plane (",
            "add a node",
            vec![tainted("node-role.kubernetes.io/control-plane")],
        ),
        says(
            "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }; n2 has the taint node.kubernetes.io/disk-pressure (",
            "have the node repaired, whose taints and conditions tell its trouble: kubectl describe node n2",
            vec![tainted("node.kubernetes.io/disk-pressure")],
        ),
        says(
            "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }; n2 has the taint node.kubernetes.io/unreachable (",
            "kubectl describe node n2",
            vec![tainted("node.kubernetes.io/unreachable")],
        ),
        says(
            "0/3 nodes are available: 3 Insufficient memory.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 3 Insufficient memory (",
            "request less",
            vec![],
        ),
        says(
            "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 3 node(s) didn't match Pod's node affinity/selector (",
            "correct the node selector or the node affinity",
            vec![],
        ),
        says(
            "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 3 node(s) didn't match pod anti-affinity rules (",
            "relax the affinity",
            vec![],
        ),
        says(
            "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 3 node(s) didn't match PersistentVolume's node affinity (",
            "kubectl describe persistentvolume",
            vec![],
        ),
        says(
            "0/2 nodes are available: 2 Too many pods.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 2 Too many pods (",
            "add a node",
            vec![],
        ),
        // The obstacle of most nodes comes first.
        says(
            "0/40 nodes are available: 1 node(s) were unschedulable, 3 node(s) had untolerated taint(s), 36 Insufficient cpu.",
            "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 node(s) were unschedulable, 3 node(s) had untolerated taint(s), 36 Insufficient cpu (",
            "request less; see why the node has the taint (kubectl describe node NODE), and tolerate the taint in the pod template only if the pods belong on such a node, or add a node; let pods",
            vec![],
        ),
    ]);
}

#[test]
fn what_the_scheduler_itself_could_not_do_is_no_lack_of_room() {
    let message = "pods \"web-x\" is forbidden: User \"s\" cannot create resource \"pods/binding\"";
    let mut objects = unschedulable(message);
    objects[2].data["status"]["conditions"][0]["reason"] = "SchedulerError".into();
    let cause = ask(WEB, &objects, &calm()).root_cause.unwrap();
    assert_eq!((cause.reason.as_str(), &*cause.meaning), ("SchedulerError", "could not be bound to a node"));
    assert!(cause.advice.contains("log of the scheduler"), "{}", cause.advice);
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

#[test]
fn a_closed_node_that_the_pod_does_not_ask_for_is_no_remedy() {
    let message = "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 node(s) didn't match Pod's node affinity/selector.";
    let mut objects = unschedulable(message);
    objects[2].data["spec"] = json!({"nodeSelector": {"pool": "gpuu"}});
    let taint = json!({"spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}});
    let nodes = vec![node("control", taint), node("n1", json!({}))];
    let cause = ask(WEB, &objects, &with(vec![], nodes, vec![])).root_cause.unwrap();
    assert_eq!(cause.advice, OF_SELECTOR);
}

const OF_SELECTOR: &str = "correct the node selector or the node affinity in the pod template (if it has none, an admission webhook added it), or label a node";

#[test]
fn a_node_that_is_cordoned_for_its_trouble_is_to_be_repaired() {
    let objects = unschedulable("0/1 nodes are available: 1 node(s) were unschedulable.");
    let told = |trouble: Option<Value>| {
        let body = json!({"spec": {"unschedulable": true}, "status": {"conditions": trouble.into_iter().collect::<Vec<_>>()}});
        ask(WEB, &objects, &with(vec![], vec![node("n1", body)], vec![])).root_cause.unwrap()
    };
    assert!(told(None).advice.contains("kubectl uncordon n1"), "{}", told(None).advice);
    let sick = told(Some(condition("Ready", "False", "KubeletNotReady", "PLEG is not healthy")));
    assert!(sick.meaning.ends_with("n1 is not ready (KubeletNotReady)"), "{}", sick.meaning);
    assert!(
        sick.advice.contains("kubectl describe node n1") && !sick.advice.contains("uncordon"),
        "{}",
        sick.advice
    );
}

#[test]
fn a_pod_that_names_a_node_that_never_was_is_to_name_another_one() {
    let missing = Identity::new("v1", "Node", None, "n9");
    let pod = on(pod("web-x", json!({"phase": "Pending"})), "n9");
    let cause = ask(WEB, &chain(pod), &with(vec![], vec![], vec![missing])).root_cause.unwrap();
    assert_eq!(cause.meaning, "names Node/n9 in its spec.nodeName, which does not exist");
}

#[test]
fn the_volume_that_keeps_a_pod_from_all_nodes_is_named() {
    let mut objects =
        unschedulable("0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity.");
    objects[2].data["spec"] = json!({"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]});
    let body = json!({"spec": {"volumeName": "pv-zone"}, "status": {"phase": "Bound"}});
    let claim = object("v1", "PersistentVolumeClaim", "data", None, body);
    let cause = ask(WEB, &objects, &with(vec![claim], vec![], vec![])).root_cause.unwrap();
    assert!(cause.advice.ends_with("kubectl describe persistentvolume pv-zone"), "{}", cause.advice);
}

#[test]
fn a_closed_node_that_the_affinity_of_a_pod_excludes_is_no_remedy() {
    let taint = |key: &str| json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}});
    let mut labelled = node("n4", json!({"spec": {"unschedulable": true}}));
    labelled.metadata.labels = Some([("disktype".to_owned(), "ssd".to_owned())].into());
    let closed = [node("n1", taint("dedicated")), node("n2", json!({"spec": {"unschedulable": true}}))];
    let message = "0/4 nodes are available: 1 node(s) were unschedulable, 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node affinity/selector.";
    let asks = |terms: Value, nodes: &[DynamicObject]| {
        let mut objects = unschedulable(message);
        objects[2].data["spec"]["affinity"]["nodeAffinity"] =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        ask(WEB, &objects, &with(vec![], nodes.to_vec(), vec![])).root_cause.unwrap()
    };
    let ssd = json!({"matchExpressions": [{"key": "disktype", "operator": "In", "values": ["ssd"]}]});
    let named = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n4"]}]});
    for terms in [json!([ssd]), json!([named]), json!([named, ssd])] {
        let cause = asks(terms.clone(), &closed);
        assert_eq!(cause.advice, OF_SELECTOR, "{terms}");
        assert!(!cause.meaning.contains("n1") && !cause.meaning.contains("n2"), "{}", cause.meaning);
        let all = [&closed[..], std::slice::from_ref(&labelled)].concat();
        let cause = asks(terms.clone(), &all);
        assert!(cause.meaning.ends_with("; n4 is cordoned"), "{terms}: {}", cause.meaning);
    }
    // Where nodes may not be read, no obstacle is left out.
    let unread = asks(json!([ssd]), &[]).advice;
    assert!(unread.contains("uncordon NODE") && unread.ends_with(OF_SELECTOR), "{unread}");
}

#[test]
fn nobody_is_told_to_tolerate_the_trouble_of_a_node() {
    let unnamed = "0/2 nodes are available: 2 node(s) had untolerated taint(s).";
    let advice = |message: &str, keys: &[&str]| {
        let taint = |key: &&str| json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}});
        let nodes = keys.iter().map(|key| node(key.split('/').next_back().unwrap(), taint(key))).collect();
        ask(WEB, &unschedulable(message), &with(vec![], nodes, vec![])).root_cause.unwrap().advice
    };
    for name in ["disk-pressure", "memory-pressure", "pid-pressure", "not-ready", "unreachable"] {
        let key = format!("node.kubernetes.io/{name}");
        let sick = advice(unnamed, &[&key]);
        assert_eq!(
            sick,
            format!(
                "have the node repaired, whose taints and conditions tell its trouble: kubectl describe node {name}"
            )
        );
        let named = unnamed.replace("taint(s)", &format!("taint {{{key}: }}"));
        assert!(!advice(&named, &[]).contains("tolerate"), "{}", advice(&named, &[]));
    }
    let both = advice(unnamed, &["node.kubernetes.io/not-ready", "dedicated"]);
    assert!(both.contains("kubectl describe node not-ready; see why") && both.contains("node dedicated),"));
}

/// Present schedulers name no taints, and count them also for nodes that the pod does not ask for.
#[test]
fn only_closed_nodes_that_a_pod_selects_are_named() {
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
            says: "BasicDeployment/web is not ready: Pod/web-x fits on no node: 1 node(s) were unschedulable, 2 node(s) had untolerated taint(s), 6 node(s) didn't match Pod's node affinity/selector; n1 is cordoned, n2 has the taint dedicated (",
            advises: "see why the node has the taint (kubectl describe node n2), and tolerate the taint in the pod template only if the pods belong on such a node, or add a node; let pods on the node again: kubectl uncordon n1",
        },
        Scene {
            name: "without the right to read nodes",
            asked: WEB,
            objects: unschedulable("0/2 nodes are available: 2 node(s) had untolerated taint(s)."),
            surroundings: calm(),
            says: "BasicDeployment/web is not ready: Pod/web-x fits on no node: 2 node(s) had untolerated taint(s) (",
            advises: "kubectl describe node NODE), and tolerate the taint",
        },
    ]);
}
