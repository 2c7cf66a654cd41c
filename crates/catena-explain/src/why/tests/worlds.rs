//! Generated worlds in which one fact is broken: why is never wrong about it, and never silent.

use catena_cluster::Identity;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{
    placement::{wide, with},
    scene::*,
};
use crate::why::facts::{Surroundings, Warning};

/// The kinds above the pods, the highest first.
type Chain = &'static [(&'static str, &'static str)];

const CHAINS: [Chain; 6] = [
    &[(GROUP, "BasicDeployment"), (GROUP, "BasicReplicaSet")],
    &[(GROUP, "BasicDeployment"), ("argoproj.io/v1alpha1", "Rollout"), ("apps/v1", "ReplicaSet")],
    &[(GROUP, "BasicDeployment"), ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet")],
    &[(GROUP, "BasicDeployment"), ("apps/v1", "StatefulSet")],
    &[("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet")],
    &[("apps/v1", "DaemonSet")],
];

/// The pod that breaks.
const BROKEN: &str = "web-0";

/// An object above the pods that reports this number of serving replicas.
fn level(chain: Chain, index: usize, serving: i64, wanted: i64) -> DynamicObject {
    let (api_version, kind) = chain[index];
    let is_ready = serving == wanted;
    let counted = format!("{serving} of {wanted}");
    let body = match kind {
        "BasicDeployment" | "BasicReplicaSet" => {
            let (status, reason) = if is_ready { ("True", "Complete") } else { ("False", "Progressing") };
            json!({"spec": {"replicas": wanted}, "status": {
                "observedGeneration": 1, "active": serving,
                "conditions": [condition("Ready", status, reason, &counted)],
            }})
        }
        "Rollout" => json!({"spec": {"replicas": wanted}, "status": {
            "observedGeneration": "1", "readyReplicas": serving,
            "conditions": [condition("Available", "True", "AvailableReason", "")],
        }}),
        "Deployment" => json!({"spec": {"replicas": wanted}, "status": {
            "observedGeneration": 1, "replicas": wanted, "updatedReplicas": wanted,
            "availableReplicas": serving, "readyReplicas": serving,
            "conditions": [
                condition("Available", "True", "MinimumReplicasAvailable", ""),
                condition("Progressing", "True", "ReplicaSetUpdated", &counted),
            ],
        }}),
        "DaemonSet" => json!({"status": {
            "observedGeneration": 1, "desiredNumberScheduled": wanted, "numberReady": serving,
        }}),
        _ => json!({"spec": {"replicas": wanted}, "status": {
            "observedGeneration": 1, "replicas": wanted, "readyReplicas": serving,
        }}),
    };
    let owner = index.checked_sub(1).map(|above| format!("{}/web", chain[above].1));
    object(api_version, kind, "web", owner.as_deref(), body)
}

/// A chain above pods that all serve, which reports this number of them.
fn world(chain: Chain, reported: i64, wanted: i64) -> Vec<DynamicObject> {
    let mut objects: Vec<_> = (0..chain.len()).map(|index| level(chain, index, reported, wanted)).collect();
    let owner = format!("{}/web", chain[chain.len() - 1].1);
    for number in 0..wanted {
        let status = json!({"phase": "Running", "conditions": [condition("Ready", "True", "", "")]});
        let mut pod = object("v1", "Pod", &format!("web-{number}"), Some(&owner), json!({"status": status}));
        pod.data["spec"] = json!({"nodeName": "n0"});
        objects.push(pod);
    }
    objects
}

/// Something that can be wrong with a pod.
struct Fault {
    name: &'static str,
    /// The pod from then on; null if it is gone.
    pod: Value,
    surroundings: Surroundings,
    /// The object at fault, as far as somebody can know.
    blames: Option<&'static str>,
    /// A word that only the fault has.
    word: &'static str,
}

fn faults() -> Vec<Fault> {
    let fault =
        |name, pod: Value, word| Fault { name, pod, surroundings: calm(), blames: Some("Pod/web-0"), word };
    let waits = |reason: &str, message: &str| {
        let container = json!({"name": "main", "state": {"waiting": {"reason": reason, "message": message}}});
        json!({"status": {"phase": "Pending", "containerStatuses": [container]}})
    };
    let running = |condition: Value| json!({"status": {"phase": "Running", "conditions": [condition]}});
    let unready = |message: &str| running(condition("Ready", "False", "ContainersNotReady", message));
    let node = |ready: Value| wide("v1", "Node", "n0", json!({"status": {"conditions": [ready]}}));
    let dead = node(condition("Ready", "Unknown", "NodeStatusUnknown", "the kubelet is mute"));
    let warning = Warning {
        about: "Pod/web-0".into(),
        reason: "FailedMount".into(),
        message: "no secret called quince".into(),
        at: THEN.parse().ok(),
        ..Warning::default()
    };
    let no_node = Identity::new("v1", "Node", None, "n0");
    let scheduled = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available: 3 quince.");
    vec![
        fault("an image", waits("ImagePullBackOff", "quince"), "quince"),
        fault("a crash", waits("CrashLoopBackOff", "quince"), "quince"),
        fault("a reason that nobody knows", waits("QuantumDecoherence", "quince"), "quince"),
        fault(
            "no room",
            json!({"status": {"phase": "Pending", "conditions": [scheduled]}, "spec": {}}),
            "quince",
        ),
        fault("a probe", unready("quince"), "quince"),
        fault("no words at all", unready(""), "NotReady"),
        fault(
            "a finalizer",
            json!({"metadata": {"deletionTimestamp": THEN, "finalizers": ["example.com/quince"]}}),
            "example.com/quince",
        ),
        Fault {
            surroundings: Surroundings { warnings: vec![warning], ..calm() },
            ..fault("only a Warning tells", unready(""), "quince")
        },
        Fault {
            surroundings: with(vec![dead], vec![], vec![]),
            blames: Some("Node/n0"),
            ..fault("a dead node", unready(""), "NodeStatusUnknown")
        },
        Fault {
            surroundings: with(vec![], vec![], vec![no_node]),
            ..fault("a node that is gone", unready(""), "Node/n0, which no longer exists")
        },
        Fault { blames: None, ..fault("a pod that is gone", Value::Null, "") },
    ]
}

/// The words of an object that is well, or has only to be waited for.
const WELL: [&str; 6] =
    ["is ready: ", "is ready.", "has succeeded", "does not report whether", "reports no obstacle", "moment"];

fn merge(object: &mut DynamicObject, change: &Value) {
    let mut whole = serde_json::to_value(&*object).unwrap();
    for (part, fields) in change.as_object().unwrap() {
        match fields.as_object() {
            Some(fields) if part == "metadata" => {
                whole[part].as_object_mut().unwrap().extend(fields.clone());
            }
            _ => whole[part] = fields.clone(),
        }
    }
    *object = serde_json::from_value(whole).unwrap();
}

#[test]
fn a_world_in_which_all_is_well_is_called_well() {
    for chain in CHAINS {
        for wanted in [1, 3] {
            let objects = world(chain, wanted, wanted);
            for object in &objects {
                let asked = object.metadata.uid.as_deref().unwrap();
                let answer = ask_exactly(asked, &objects, &calm());
                assert_eq!((answer.well, answer.exit_code()), (true, 0), "{chain:?}: {answer:?}");
                assert!(answer.sentence.starts_with(&format!("{asked} is ready")), "{}", answer.sentence);
            }
        }
    }
}

#[test]
fn one_broken_pod_is_never_concealed_and_nothing_else_is_blamed() {
    let mut number = 0;
    for chain in CHAINS {
        for fault in faults() {
            // Its owners have noticed it, or not yet.
            for (missing, wanted) in [(0, 1), (1, 1), (0, 3), (1, 3)] {
                number += 1;
                tell(chain, &fault, wanted - missing, wanted);
            }
        }
    }
    assert!(number > 200, "{number} worlds");
}

fn tell(chain: Chain, fault: &Fault, reported: i64, wanted: i64) {
    let mut objects = world(chain, reported, wanted);
    let at = objects.iter().position(|object| object.metadata.name.as_deref() == Some(BROKEN)).unwrap();
    if fault.pod.is_null() {
        objects.remove(at);
    } else {
        merge(&mut objects[at], &fault.pod);
    }
    let is_above = |object: &&DynamicObject| {
        object.types.as_ref().unwrap().kind != "Pod" || object.metadata.name.as_deref() == Some(BROKEN)
    };
    for object in objects.iter().filter(is_above) {
        let asked = object.metadata.uid.as_deref().unwrap();
        let place = format!("{}, {reported} of {wanted} reported, {asked} of {chain:?}", fault.name);
        let answer = ask_exactly(asked, &objects, &fault.surroundings);
        let told = explained_exactly(asked, &objects, &fault.surroundings);
        assert_eq!((answer.well, answer.exit_code()), (false, 5), "{place}: {told}");
        let cause = answer.root_cause.unwrap();
        match fault.blames {
            Some(blamed) => {
                assert_eq!(cause.object.to_string(), blamed, "{place}: {told}");
                assert!(told.contains(fault.word), "{place}: {told}");
                let says = |words: &&&str| told.contains(**words);
                assert_eq!(WELL.iter().find(says), None, "{place}: {told}");
            }
            None => assert_ne!(cause.object.kind, "Pod", "{place}: {told}"),
        }
    }
}

#[test]
fn what_an_object_says_of_itself_is_quoted_whoever_knows_the_word() {
    for chain in CHAINS {
        for index in 0..chain.len() {
            let mut objects = world(chain, 3, 3);
            let stuck = [condition("Stalled", "True", "Jammed", "a quince is in the gears")];
            objects[index].data["status"]["conditions"] = json!(stuck);
            let asked = objects[index].metadata.uid.clone().unwrap();
            let told = explained_exactly(&asked, &objects, &calm());
            let answer = ask_exactly(&asked, &objects, &calm());
            assert_eq!((answer.well, answer.exit_code()), (false, 5), "{told}");
            assert!(told.contains("Jammed") && told.contains("a quince is in the gears"), "{told}");
        }
    }
}

#[test]
fn what_keeps_a_pod_from_being_created_is_found_from_every_object_above() {
    for chain in CHAINS {
        for is_told_by_warning in [false, true] {
            let mut objects = world(chain, 2, 3);
            objects.pop();
            let last = &mut objects[chain.len() - 1];
            let culprit = last.metadata.uid.clone().unwrap();
            let message = "pods \"web-2\" is forbidden: exceeded quota: quince, requested: pods=1";
            let mut surroundings = calm();
            if is_told_by_warning {
                let (about, reason, message) = (culprit.clone(), "FailedCreate".into(), message.into());
                surroundings.warnings =
                    vec![Warning { about, reason, message, at: THEN.parse().ok(), ..Warning::default() }];
            } else {
                last.data["status"]["conditions"] = json!([condition("Stalled", "True", "Jammed", message)]);
            }
            for object in &objects[..chain.len()] {
                let asked = object.metadata.uid.as_deref().unwrap();
                let told = explained_exactly(asked, &objects, &surroundings);
                let cause = ask_exactly(asked, &objects, &surroundings).root_cause.unwrap();
                assert_eq!(cause.object.uid, culprit, "{told}");
                assert!(told.contains("exceeded quota: quince"), "{told}");
                assert!(WELL.iter().all(|words| !told.contains(words)), "{told}");
            }
        }
    }
}

#[test]
fn nothing_is_called_well_while_what_would_show_it_was_not_read() {
    let blind = || Surroundings { hides_dependents: true, is_incomplete: true, ..calm() };
    for chain in CHAINS {
        let objects = world(chain, 3, 3);
        let unread = &objects[..chain.len()];
        for object in unread {
            let asked = object.metadata.uid.as_deref().unwrap();
            let answer = ask_exactly(asked, unread, &blind());
            assert_eq!(
                (answer.well, answer.exit_code(), &answer.root_cause),
                (false, 1, &None),
                "{answer:?}"
            );
            assert!(answer.sentence.ends_with("whether it is well is unknown."), "{}", answer.sentence);
        }
        for name in ["basic-deployment-controller", "basic-replicaset-controller"] {
            let controllers = without(name);
            let is_theirs = chain.iter().any(|(version, kind)| {
                let identity = Identity::new(version, kind, None, "web");
                crate::why::controllers::controller_of(&identity) == Some(name)
            });
            let top = objects[0].metadata.uid.as_deref().unwrap();
            assert_eq!(ask_exactly(top, &objects, &controllers).well, !is_theirs, "{name} of {chain:?}");
        }
    }
}
