//! A `BasicDeployment` and its objects, observed in their desired state.

use std::{collections::HashMap, sync::Arc, time::Duration};

use basic_deployment_controller::{
    child::Child,
    child_kind::ChildKind,
    desired::Desired,
    observed::{Found, ListedKind, Observed},
    revision::Revision,
};
use catena_api::{BasicDeployment, BasicDeploymentSpec, keys};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_kit::{report::StatusAge, run::Backoffs};
use operator_templates::Rendered;
use operator_watch::{SeenVersion, WriteTarget};
use replica_contract::Mapping;
use serde_json::{Value, json};

/// A `BasicDeployment` of three replicas.
pub fn deployment() -> BasicDeployment {
    let metadata = ObjectMeta {
        name: Some("web".into()),
        namespace: Some("shop".into()),
        uid: Some("deployment".into()),
        resource_version: Some("7".into()),
        generation: Some(1),
        ..ObjectMeta::default()
    };
    let spec = BasicDeploymentSpec { replicas: 3, template: "default".into(), ..Default::default() };
    BasicDeployment { metadata, spec, status: None }
}

/// What its template gives.
pub fn rendered() -> Rendered {
    let object = json!({
        "apiVersion": "catena.dev/v1alpha1",
        "kind": "BasicReplicaSet",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"parameters": {"image": "nginx"}},
    });
    Rendered { object, hash: "new".into() }
}

/// The kind of its child.
pub fn replica_sets() -> Arc<ChildKind> {
    let (api_version, kind) = ("catena.dev/v1alpha1".into(), "BasicReplicaSet".into());
    Arc::new(ChildKind { api_version, kind, resource: None, contract: Mapping::default() })
}

/// What its child is to be.
pub fn desired() -> Desired {
    Desired::new(&deployment(), rendered(), replica_sets())
}

/// The owner reference of dependents of the `BasicDeployment` with this uid.
pub fn owner(uid: &str) -> Value {
    json!({
        "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// The child on the server.
pub fn child_object(name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet",
        "metadata": {
            "name": name, "namespace": "shop", "uid": uid, "resourceVersion": "5", "generation": 1,
            "labels": {keys::DEPLOYMENT_UID: "deployment"},
            "annotations": {keys::HASH: "new"},
            "ownerReferences": [owner("deployment")],
        },
        "spec": {"replicas": 3, "parameters": {"image": "nginx"}, "maxSurge": "25%"},
        "status": {
            "active": 3, "observedGeneration": 1, "selector": "a=b",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// The child as it is kept.
pub fn child(name: &str, uid: &str) -> Arc<Child> {
    let object = serde_json::from_value(child_object(name, uid)).unwrap();
    Arc::new(Child::of(object, &replica_sets()))
}

/// A revision of what is rendered now, under this name.
pub fn revision(name: &str) -> Arc<Revision> {
    Arc::new(Revision {
        namespace: "shop".into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
        owner: None,
        made_for: None,
        number: 1,
        hash: "new".into(),
        kind: ("catena.dev/v1alpha1".into(), "BasicReplicaSet".into()),
        child: "web".into(),
        numbered_at: None,
        is_deleting: false,
    })
}

/// A kind that is watched.
pub fn listed(kind: Arc<ChildKind>) -> ListedKind {
    ListedKind { watched: WriteTarget::new(kind.api_resource(), &SeenVersion::default()), kind }
}

/// What is observed when nothing is left to do.
pub fn observed() -> Observed {
    Observed {
        deployment: Arc::new(deployment()),
        backoffs: Backoffs::default(),
        is_blind: false,
        now: Timestamp::from_second(1_767_400_000).unwrap(),
        kinds: vec![listed(replica_sets())],
        rendered: Ok(rendered()),
        unread: Vec::new(),
        pin: None,
        unlisted: None,
        desired: Ok(desired()),
        child: Found::Ours(child("web", "child")),
        look: None,
        others: Vec::new(),
        revisions: vec![revision("web-new")],
        orphans: Vec::new(),
        settled_as: None,
        given_replicas: HashMap::new(),
        since_progress: Duration::ZERO,
        behind_for: Duration::ZERO,
        status_age: StatusAge::Written(Duration::from_secs(60)),
    }
}
