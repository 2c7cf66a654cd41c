//! Scenes of claims, their volumes and their classes.

use catena_cluster::Identity;
use kube::core::DynamicObject;
use serde_json::json;

use super::{
    placement::{unschedulable, wide, with},
    scene::*,
    scenes::{Scene, assert_right},
};
use crate::{
    Node,
    why::{
        facts::{Related, Surroundings, Warning},
        read::alone,
    },
};

const WEB: &str = "BasicDeployment/web";

fn with_claim(message: &str) -> Vec<DynamicObject> {
    let mut objects = unschedulable(message);
    objects[2].data["spec"] =
        json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]});
    objects
}

fn claim(class: Option<&str>) -> DynamicObject {
    let body = json!({"spec": {"storageClassName": class}, "status": {"phase": "Pending"}});
    object("v1", "PersistentVolumeClaim", "data", None, body)
}

fn class(provisioner: &str) -> DynamicObject {
    wide("storage.k8s.io/v1", "StorageClass", "fast", json!({"provisioner": provisioner}))
}

fn by_hand() -> Surroundings {
    with(vec![claim(Some("fast")), class("kubernetes.io/no-provisioner")], vec![], vec![])
}

fn volumes() -> Vec<Node> {
    let volume = |name: &str, class: &str, claim: &str, phase: &str| {
        let of = json!({"namespace": "shop", "name": claim});
        let spec =
            json!({"claimRef": of, "persistentVolumeReclaimPolicy": "Retain", "storageClassName": class});
        let body = json!({"spec": spec, "status": {"phase": phase}});
        alone(wide("v1", "PersistentVolume", name, body)).unwrap()
    };
    vec![
        volume("pv-1", "fast", "data", "Bound"),
        volume("pv-2", "fast", "other", "Released"),
        volume("pv-3", "slow", "data", "Released"),
        volume("pv-rel", "fast", "data", "Released"),
    ]
}

#[test]
fn a_pod_leads_to_its_claim_and_the_claim_to_its_class() {
    let unbound = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
    let missing = Identity {
        api_version: "v1".into(),
        kind: "PersistentVolumeClaim".into(),
        namespace: Some("shop".into()),
        name: "data".into(),
        uid: String::new(),
    };
    let no_class = Identity {
        api_version: "storage.k8s.io/v1".into(),
        kind: "StorageClass".into(),
        name: "fast".into(),
        ..Identity::default()
    };
    let mut failing = with(vec![claim(Some("fast")), class("csi.example.com")], vec![], vec![]);
    failing.warnings.push(Warning {
        about: "PersistentVolumeClaim/data".into(),
        by: "csi".into(),
        reason: "ProvisioningFailed".into(),
        message: "the pool is full".into(),
        at: None,
        ..Warning::default()
    });
    let scene = |name, surroundings, says, advises| Scene {
        name,
        asked: WEB,
        objects: with_claim(unbound),
        surroundings,
        says,
        advises,
    };
    let mut waiting = class("csi.example.com");
    waiting.data["volumeBindingMode"] = "WaitForFirstConsumer".into();
    let mut scenes = vec![
        Scene {
            name: "a claim that no pod uses yet",
            asked: "PersistentVolumeClaim/data",
            objects: vec![claim(Some("fast"))],
            surroundings: with(vec![waiting], vec![], vec![]),
            says: "PersistentVolumeClaim/data is not bound: it waits for the first pod that uses it",
            advises: "create a pod that uses it",
        },
        scene(
            "a claim without a class",
            with(vec![claim(None)], vec![], vec![]),
            "BasicDeployment/web is not ready: PersistentVolumeClaim/data is not bound, and has no storage class",
            "kubectl get storageclasses",
        ),
        scene(
            "a class that does not exist",
            with(vec![claim(Some("fast"))], vec![], vec![no_class]),
            "BasicDeployment/web is not ready: StorageClass/fast does not exist",
            "create the StorageClass",
        ),
        scene(
            "volumes made by hand",
            by_hand(),
            "BasicDeployment/web is not ready: PersistentVolumeClaim/data is not bound: volumes of its StorageClass/fast are made by hand",
            "create a PersistentVolume",
        ),
        scene(
            "a volume of a former claim",
            Surroundings { related: Related { volumes: volumes(), ..by_hand().related }, ..by_hand() },
            "BasicDeployment/web is not ready: PersistentVolumeClaim/data is not bound: no volume is made for it, and PersistentVolume/pv-rel is kept for a former claim of its name (NoVolumeFits",
            "kubectl patch persistentvolume pv-rel --type merge",
        ),
        scene(
            "a provisioner that fails",
            failing,
            "BasicDeployment/web is not ready: PersistentVolumeClaim/data is not bound: no volume of its StorageClass/fast has been made for it by csi.example.com",
            "provisioner of the class is running",
        ),
    ];
    let mut lost = claim(Some("fast"));
    lost.data["spec"]["volumeName"] = "pv-1".into();
    lost.data["status"]["phase"] = "Lost".into();
    let bound_to_none = "0/1 nodes are available: persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"pv-1\".";
    scenes.push(Scene {
        name: "a claim that has lost its volume",
        asked: WEB,
        objects: with_claim(bound_to_none),
        surroundings: with(vec![lost, class("csi.example.com")], vec![], vec![]),
        says: "BasicDeployment/web is not ready: PersistentVolumeClaim/data has lost its volume: PersistentVolume/pv-1 no longer exists (VolumeLost",
        advises: "create the PersistentVolume again if its disk still exists",
    });
    scenes.push(Scene {
        name: "a claim that does not exist",
        asked: WEB,
        objects: with_claim("0/1 nodes are available: persistentvolumeclaim \"data\" not found."),
        surroundings: with(vec![], vec![], vec![missing]),
        says: "BasicDeployment/web is not ready: PersistentVolumeClaim/data does not exist",
        advises: "create the PersistentVolumeClaim",
    });
    assert_right(&scenes);
}

#[test]
fn a_claim_that_waits_for_its_pod_is_not_blamed_for_it() {
    let mut objects = with_claim("0/1 nodes are available: persistentvolumeclaim \"logs\" not found.");
    let logs = json!({"name": "logs", "persistentVolumeClaim": {"claimName": "logs"}});
    objects[2].data["spec"]["volumes"].as_array_mut().unwrap().push(logs);
    let mut class = class("csi.example.com");
    class.data["volumeBindingMode"] = "WaitForFirstConsumer".into();
    let logs = Identity::new("v1", "PersistentVolumeClaim", Some("shop"), "logs");
    let sentence = |missing: Vec<Identity>| {
        ask(WEB, &objects, &with(vec![claim(Some("fast")), class.clone()], vec![], missing)).sentence
    };
    let (missing, unread) = (sentence(vec![logs]), sentence(vec![]));
    assert!(missing.contains("PersistentVolumeClaim/logs does not exist"), "{missing}");
    assert!(unread.contains("Pod/web-x fits on no node"), "{unread}");
}

#[test]
fn a_claim_that_names_its_volume_waits_for_no_other() {
    let mut claim = claim(Some("fast"));
    claim.data["spec"]["volumeName"] = "pv-9".into();
    let volume = Identity::new("v1", "PersistentVolume", None, "pv-9");
    let there = wide("v1", "PersistentVolume", "pv-9", json!({"status": {"phase": "Released"}}));
    let scene = |name, found: Vec<DynamicObject>, missing, says, advises| Scene {
        name,
        asked: WEB,
        objects: with_claim("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
        surroundings: with([vec![claim.clone(), class("csi.example.com")], found].concat(), vec![], missing),
        says,
        advises,
    };
    assert_right(&[
        scene(
            "a volume that does not exist",
            vec![],
            vec![volume],
            "BasicDeployment/web is not ready: PersistentVolume/pv-9 does not exist (VolumeMissing",
            "create the PersistentVolume",
        ),
        scene(
            "a volume of another claim",
            vec![there],
            vec![],
            "BasicDeployment/web is not ready: PersistentVolumeClaim/data is not bound: it waits for the PersistentVolume/pv-9 that it names",
            "kubectl describe persistentvolume pv-9",
        ),
    ]);
}

/// Until it gives up after ten minutes, the scheduler says nothing of a pod for which it waits for a volume.
#[test]
fn a_claim_for_which_a_node_was_selected_explains_its_pod_that_has_none() {
    let selected = |is: bool| {
        let mut claim = claim(Some("fast"));
        let node = ("volume.kubernetes.io/selected-node".to_owned(), "n1".to_owned());
        claim.metadata.annotations = is.then(|| [node].into());
        claim
    };
    let mut class = class("example.com/none");
    class.data["volumeBindingMode"] = "WaitForFirstConsumer".into();
    let told_at = |created: &str, is_selected: bool, conditions: serde_json::Value| {
        let mut objects = with_claim("");
        objects[2].metadata.creation_timestamp = serde_json::from_value(created.into()).unwrap();
        for above in &mut objects[..2] {
            above.data["status"]["blockedBy"]["since"] = created.into();
        }
        objects[2].data["status"] = json!({"phase": "Pending", "conditions": conditions});
        let surroundings = with(vec![selected(is_selected), class.clone()], vec![], vec![]);
        ask(WEB, &objects, &surroundings).sentence
    };
    let told = |is_selected, conditions| told_at(THEN, is_selected, conditions);
    let gave_up =
        condition("PodScheduled", "False", "SchedulerError", "running PreBind plugin \"VolumeBinding\"");
    let claim = "BasicDeployment/web is not ready: PersistentVolumeClaim/data is not bound: no volume of its StorageClass/fast has been made for it by example.com/none";
    for conditions in [json!([]), json!([gave_up])] {
        let sentence = told(true, conditions);
        assert!(sentence.starts_with(claim), "{sentence}");
    }
    assert!(told(false, json!([])).contains("NotScheduled"), "the claim waits for the pod");
    let at_once = told_at("2026-01-01T00:09:40Z", true, json!([]));
    assert!(at_once.contains("is starting"), "a volume takes some time: {at_once}");
}
