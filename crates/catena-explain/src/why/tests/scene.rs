//! Objects, controllers and times to ask about.

use anstream::adapter::strip_str;
use jiff::{SignedDuration, Timestamp};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::{
    grow,
    why::{
        answer::Answer,
        controllers::{Controllers, Installation, Lease},
        diagnose::diagnose,
        facts::{Facts, Surroundings},
        text,
    },
};

pub fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

/// Three minutes before now.
pub const THEN: &str = "2026-01-01T00:07:00Z";

pub const GROUP: &str = "catena.dev/v1alpha1";

/// An object; its uid is its kind and name, and its owner is named by uid.
pub fn object(api_version: &str, kind: &str, name: &str, owner: Option<&str>, body: Value) -> DynamicObject {
    let owners = owner.map(|owner| {
        let (kind, name) = owner.split_once('/').unwrap();
        json!([{"apiVersion": GROUP, "kind": kind, "name": name, "uid": owner, "controller": true}])
    });
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("{kind}/{name}"), "generation": 1,
            "creationTimestamp": THEN, "ownerReferences": owners,
        },
    });
    let Value::Object(fields) = body else { panic!("no object: {body}") };
    for (field, value) in fields {
        match value {
            Value::Object(more) if object[&field].is_object() => {
                object[&field].as_object_mut().unwrap().extend(more);
            }
            value => object[field] = value,
        }
    }
    serde_json::from_value(object).unwrap()
}

pub fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": THEN})
}

pub fn not_ready(reason: &str, message: &str, blocker: Value) -> Value {
    let conditions = [condition("Ready", "False", reason, message)];
    let mut body = json!({"spec": {"replicas": 3}, "status": {"observedGeneration": 1, "active": 2, "conditions": conditions}});
    body["status"]["blockedBy"] = blocker;
    body
}

pub fn blocker(kind: &str, name: &str, reason: &str, message: &str) -> Value {
    let api_version = if kind == "Pod" { "v1" } else { GROUP };
    json!({"apiVersion": api_version, "kind": kind, "name": name, "reason": reason, "message": message, "since": THEN})
}

pub fn ready() -> Value {
    let conditions = [condition("Ready", "True", "Complete", "3 of 3 replicas are serving")];
    json!({"spec": {"replicas": 3}, "status": {"observedGeneration": 1, "active": 3, "conditions": conditions}})
}

/// The status that the definition gives to a new object.
pub fn unreported() -> Value {
    json!({"spec": {"replicas": 3}, "status": {"conditions": [{
        "type": "Ready", "status": "Unknown", "reason": "Pending", "message": "the controller has not reported yet",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }]}})
}

pub fn deployment(body: Value) -> DynamicObject {
    object(GROUP, "BasicDeployment", "web", None, body)
}

pub fn set(body: Value) -> DynamicObject {
    object(GROUP, "BasicReplicaSet", "web", Some("BasicDeployment/web"), body)
}

pub fn pod(name: &str, status: Value) -> DynamicObject {
    let mut pod = object("v1", "Pod", name, Some("BasicReplicaSet/web"), json!({}));
    pod.data["status"] = status;
    pod
}

pub fn serving(name: &str) -> DynamicObject {
    pod(name, json!({"phase": "Running", "conditions": [condition("Ready", "True", "", "")]}))
}

pub fn waiting(name: &str, reason: &str, message: &str) -> DynamicObject {
    let container = json!({"name": "main", "state": {"waiting": {"reason": reason, "message": message}}});
    pod(
        name,
        json!({
            "phase": "Pending", "containerStatuses": [container],
            "conditions": [condition("Ready", "False", "ContainersNotReady", "containers with unready status: [main]")],
        }),
    )
}

/// A deployment and a set that both name a pod as their blocker, with that pod and two that serve.
pub fn blocked_by_pod(pod: DynamicObject, reason: &str) -> Vec<DynamicObject> {
    let name = pod.metadata.name.clone().unwrap();
    let body = || {
        not_ready(
            "Progressing",
            "2 of 3 replicas are serving",
            blocker("Pod", &name, reason, "as the pod says"),
        )
    };
    vec![deployment(body()), set(body()), pod, serving("web-1"), serving("web-2")]
}

pub fn refused(reason: &str, message: &str) -> Vec<DynamicObject> {
    vec![deployment(not_ready(reason, message, blocker("BasicDeployment", "web", reason, message)))]
}

pub fn command(name: &str, bound: bool, body: Value) -> DynamicObject {
    let owner = bound.then_some("BasicDeployment/web");
    let mut body = body;
    body["spec"] = json!({"targetRef": {"name": "web"}});
    object(GROUP, "BasicDeploymentRestart", name, owner, body)
}

pub fn controller(name: &str, renewed: &str) -> Installation {
    let lease = Lease {
        holder: format!("{name}-abc"),
        renewed: renewed.parse().ok(),
        lasts: SignedDuration::from_secs(30),
        is_held_by_pod: Some(true),
    };
    Installation {
        controller: name.into(),
        name: format!("shop-{name}"),
        namespace: "catena-system".into(),
        lease: Some(lease),
        pods: Some((1, 1)),
        ..Installation::default()
    }
}

/// Surroundings without a problem: all controllers are running.
pub fn calm() -> Surroundings {
    let names = [
        "basic-deployment-controller",
        "basic-replicaset-controller",
        "command-binder",
        "command-runner",
        "backup-controller",
    ];
    let seen = names.map(|name| controller(name, "2026-01-01T00:09:55Z")).into();
    Surroundings { controllers: Controllers { seen, unseen: None }, ..Surroundings::default() }
}

pub fn without(name: &str) -> Surroundings {
    let mut surroundings = calm();
    surroundings.controllers.seen.retain(|seen| seen.controller != name);
    surroundings.controllers.seen.push(controller(name, "2026-01-01T00:04:00Z"));
    surroundings
}

/// Asks about one of these objects. Below a set that reports to be ready, there are serving pods if the scene names none.
pub fn ask(asked: &str, objects: &[DynamicObject], surroundings: &Surroundings) -> Answer {
    let owner =
        |object: &DynamicObject| Some(object.metadata.owner_references.as_ref()?.first()?.uid.clone());
    let has_pods = objects.iter().any(|object| owner(object).as_deref() == Some("BasicReplicaSet/web"));
    let mut objects = objects.to_vec();
    if !has_pods && !surroundings.hides_dependents {
        objects.extend(["web-1", "web-2", "web-3"].map(serving));
    }
    ask_exactly(asked, &objects, surroundings)
}

/// Asks about one of these objects, which are all that there are.
pub fn ask_exactly(asked: &str, objects: &[DynamicObject], surroundings: &Surroundings) -> Answer {
    let top = objects[0].metadata.uid.clone().unwrap();
    let top = grow(&top, objects).unwrap();
    let asked = top.find(asked).unwrap();
    diagnose(&Facts { asked, top: &top, surroundings, now: now() })
}

pub fn explained(asked: &str, objects: &[DynamicObject], surroundings: &Surroundings) -> String {
    strip_str(&text(&ask(asked, objects, surroundings), now())).to_string()
}

/// The text about one of these objects, which are all that there are.
pub fn explained_exactly(asked: &str, objects: &[DynamicObject], surroundings: &Surroundings) -> String {
    strip_str(&text(&ask_exactly(asked, objects, surroundings), now())).to_string()
}
