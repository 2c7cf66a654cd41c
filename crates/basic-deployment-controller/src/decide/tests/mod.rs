//! Fixtures, and the tests by topic.

mod child;
mod contests;
mod model;
mod overtaking;
mod queue;
mod restarts;
mod revisions;
mod telling;

use std::{sync::Arc, time::Duration};

use catena_api::{
    BasicDeployment, BasicDeploymentSpec, BasicDeploymentStatus, CommandStatus, contract::ReplicaContract,
    keys,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::discovery::ApiResource;
use operator_kit::{
    render::Rendered,
    report::{StatusAge, conditions},
    run::Attempt,
    watch::WatchedResource,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    child::Child,
    command::{Command, CommandKind},
    contest,
    desired::Desired,
    error::Refusal,
    observed::Found,
    revision::{Pin, Rejects, Revision, kept_marks},
    rollback,
    status::status,
    undone::{Part, Undone},
};

/// The next step for an observation.
fn decide(observed: &Observed) -> Action {
    super::decide(observed, &CommandQueue::of(observed))
}

const NEW: &str = "new";

fn rendered(hash: &str) -> Rendered {
    let object = json!({
        "apiVersion": "catena.dev/v1alpha1",
        "kind": "BasicReplicaSet",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"parameters": {"image": "nginx"}},
    });
    Rendered { object, hash: hash.into() }
}

fn desired() -> Desired {
    Desired::new(&deployment(), rendered(NEW))
}

/// A child in its desired state, with `changes` merged over it.
fn child(changes: Value) -> Arc<Child> {
    let mut object = json!({
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "child", "generation": 1,
            "labels": {keys::DEPLOYMENT_UID: "deployment"},
            "annotations": {keys::HASH: NEW},
            "ownerReferences": [{"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "deployment", "controller": true}],
        },
        "spec": {"replicas": 3, "parameters": {"image": "nginx"}, "maxSurge": "25%"},
        "status": {"active": 3, "observedGeneration": 1, "selector": "a=b"},
    });
    merge(&mut object, changes);
    let kind = ApiResource::erase::<catena_api::BasicReplicaSet>(&());
    Arc::new(Child::of(serde_json::from_value(object).unwrap(), &kind))
}

fn merge(object: &mut Value, changes: Value) {
    match (object, changes) {
        (Value::Object(object), Value::Object(changes)) => {
            for (name, value) in changes {
                merge(object.entry(name).or_insert(Value::Null), value);
            }
        }
        (place, value) => *place = value,
    }
}

fn deployment() -> BasicDeployment {
    let metadata = ObjectMeta {
        name: Some("web".into()),
        namespace: Some("shop".into()),
        uid: Some("deployment".into()),
        generation: Some(1),
        ..ObjectMeta::default()
    };
    let spec = BasicDeploymentSpec { replicas: 3, ..Default::default() };
    BasicDeployment { metadata, spec, status: None }
}

/// The stored revision for a hash.
fn revision(number: i64, hash: &str) -> Arc<Revision> {
    Arc::new(Revision {
        namespace: "shop".into(),
        name: format!("web-{hash}"),
        uid: format!("revision-{hash}"),
        owner: None,
        number,
        hash: hash.into(),
        kind: ("catena.dev/v1alpha1".into(), "BasicReplicaSet".into()),
        rejects: Rejects::default(),
        is_deleting: false,
    })
}

/// A command that is bound to the deployment, with a creation time in seconds.
fn command(kind: CommandKind, uid: &str, second: i64, changes: Value) -> Arc<Command> {
    let mut object = json!({
        "metadata": {
            "name": uid, "namespace": "shop", "uid": uid, "generation": 1,
            "creationTimestamp": Timestamp::from_second(second).unwrap().to_string(),
            "ownerReferences": [{"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "deployment"}],
        },
        "spec": {"targetRef": {"name": "web"}},
    });
    merge(&mut object, changes);
    Arc::new(Command::of(serde_json::from_value(object).unwrap(), kind))
}

/// The observation of a deployment whose rendering is stored as its first revision.
fn observed(child: Found) -> Observed {
    Observed {
        deployment: Arc::new(deployment()),
        place: WatchedResource::unwatched(ApiResource::erase::<catena_api::BasicReplicaSet>(&())),
        rendered: Ok(rendered(NEW)),
        pin: None,
        revisions: vec![revision(1, NEW)],
        occupant: None,
        commands: Some(Vec::new()),
        prepared: None,
        unheard: std::collections::HashSet::new(),
        since_told: None,
        attempt: Attempt::Allowed,
        is_blind: false,
        now: Timestamp::from_second(1_000_000).unwrap(),
        contract: ReplicaContract::default(),
        desired: Ok(desired()),
        child,
        others: Vec::new(),
        settled_as: None,
        given_replicas: std::collections::HashMap::new(),
        undone: std::collections::HashMap::new(),
        since_progress: Duration::ZERO,
        status_age: StatusAge::Written(Duration::from_secs(60)),
    }
}

fn ours(changes: Value) -> Observed {
    observed(Found::Ours(child(changes)))
}

/// Records that somebody's change of a part was undone, this many times in a row.
fn undone(observed: &mut Observed, part: Part, field: &str, since: u64, times: u32) {
    let undone = Undone { field: field.into(), since: Duration::from_secs(since), times };
    observed.undone.insert(part, undone);
}

fn spec(observed: &mut Observed) -> &mut BasicDeploymentSpec {
    &mut Arc::make_mut(&mut observed.deployment).spec
}

fn written(action: Action) -> BasicDeploymentStatus {
    match action {
        Action::WriteStatus(status) => *status,
        action => panic!("{action:?}"),
    }
}

fn ready(status: &BasicDeploymentStatus) -> (bool, String) {
    let condition = conditions::find(&status.conditions, conditions::READY).unwrap();
    assert_eq!(condition.status == "True", status.ready);
    (status.ready, condition.reason.clone())
}
