//! Scenes of deletions: terminating namespaces and definitions, and children that are left behind.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{
    scene::*,
    scenes::{Scene, assert_right},
};
use crate::{
    object::Identity,
    why::{facts::Surroundings, left_behind, relate::alone, related::Related},
};

/// A namespace that is being deleted, and waits for an object with a finalizer.
fn namespace() -> DynamicObject {
    let remaining = condition(
        "NamespaceContentRemaining",
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances",
    );
    let body = json!({"metadata": {"deletionTimestamp": THEN, "namespace": null}, "status": {"conditions": [remaining]}});
    object("v1", "Namespace", "shop", None, body)
}

fn held(finalizer: &str) -> Value {
    json!({"deletionTimestamp": THEN, "finalizers": [finalizer]})
}

fn kept() -> DynamicObject {
    object("v1", "ConfigMap", "kept", None, json!({"metadata": held("example.com/cleanup")}))
}

fn in_terminating() -> Surroundings {
    Surroundings { namespace: alone(namespace()), ..calm() }
}

fn with_contents(mut surroundings: Surroundings, contents: Vec<DynamicObject>) -> Surroundings {
    surroundings.related.contents = contents.into_iter().filter_map(alone).collect();
    surroundings
}

fn deleted(mut body: Value, metadata: Value) -> Value {
    body["metadata"] = metadata;
    body
}

#[test]
fn in_a_terminating_namespace_each_object_is_explained_by_it_or_by_its_holder() {
    let backup = json!({
        "uid": "BasicDeployment/web", "state": "Failed", "since": THEN, "reason": "NamespaceTerminating",
        "message": "the namespace \"shop\" is being deleted and accepts no new Job; set backups.db.namespace",
    });
    let protected = json!({
        "deletionTimestamp": THEN, "finalizers": ["catena.dev/backup"],
        "annotations": {"catena.dev/backup-status": backup.to_string()},
    });
    assert_right(&[
        Scene {
            name: "an object",
            asked: "BasicDeployment/web",
            objects: vec![deployment(not_ready("Progressing", "2 of 3", Value::Null)), set(ready())],
            surroundings: in_terminating(),
            says: "BasicDeployment/web is not ready: Namespace/shop is being deleted with everything in it",
            advises: "another namespace",
        },
        Scene {
            name: "an object that is ready still",
            asked: "BasicDeployment/web",
            objects: vec![deployment(ready()), set(ready())],
            surroundings: in_terminating(),
            says: "BasicDeployment/web will be deleted: Namespace/shop is being deleted",
            advises: "another namespace",
        },
        Scene {
            name: "an object that its controller has not reported on",
            asked: "BasicDeployment/web",
            objects: vec![deployment(unreported())],
            surroundings: in_terminating(),
            says: "BasicDeployment/web will be deleted: Namespace/shop is being deleted",
            advises: "another namespace",
        },
        Scene {
            name: "a child with a finalizer",
            asked: "BasicReplicaSet/web",
            objects: vec![set(deleted(ready(), held("example.com/cleanup")))],
            surroundings: in_terminating(),
            says: "BasicReplicaSet/web is being deleted and is held by the finalizer example.com/cleanup",
            advises: "the namespace has been terminating for 3m",
        },
        Scene {
            name: "a command that is not bound",
            asked: "BasicDeploymentRestart/r1",
            objects: vec![deployment(ready()), command("r1", false, json!({}))],
            surroundings: in_terminating(),
            says: "BasicDeploymentRestart/r1 is not finished: Namespace/shop is being deleted",
            advises: "another namespace",
        },
        Scene {
            name: "the namespace",
            asked: "Namespace/shop",
            objects: vec![namespace()],
            surroundings: with_contents(calm(), vec![kept()]),
            says: "Namespace/shop is not gone: ConfigMap/kept is being deleted and is held by the finalizer example.com/cleanup",
            advises: "holder of the finalizer",
        },
        Scene {
            name: "the namespace by a finalizer of its own",
            asked: "Namespace/shop",
            objects: vec![object(
                "v1",
                "Namespace",
                "shop",
                None,
                json!({"metadata": held("example.com/tenant")}),
            )],
            surroundings: calm(),
            says: "Namespace/shop is being deleted and is held by the finalizer example.com/tenant",
            advises: "holder of the finalizer",
        },
        Scene {
            name: "a protected object whose backup would go to the same namespace",
            asked: "BasicDeployment/web",
            objects: vec![deployment(deleted(ready(), protected))],
            surroundings: in_terminating(),
            says: "BasicDeployment/web is held by backup-controller until it is backed up (NamespaceTerminating",
            advises: "kubectl catena -n shop release basicdeployment.catena.dev/web",
        },
    ]);
}

/// The definition of the child is being deleted, and one of its objects is held.
fn definition() -> DynamicObject {
    let left = condition(
        "Terminating",
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
    let metadata = json!({
        "deletionTimestamp": THEN, "namespace": null,
        "finalizers": ["customresourcecleanup.apiextensions.k8s.io"],
    });
    let body = json!({
        "metadata": metadata, "status": {"conditions": [left]},
        "spec": {"group": "catena.dev", "names": {"kind": "BasicReplicaSet", "plural": "basicreplicasets"}},
    });
    object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "basicreplicasets.catena.dev", None, body)
}

#[test]
fn a_definition_that_is_being_deleted_leads_to_the_objects_that_hold_it() {
    let message = "the CustomResourceDefinition of BasicReplicaSet is being deleted and accepts no new object; create it again, or wait until it is gone";
    let instance =
        object(GROUP, "BasicReplicaSet", "old", None, json!({"metadata": held("example.com/cleanup")}));
    let found = alone(definition()).into_iter().collect();
    let surroundings = Surroundings { related: Related { found, ..Related::default() }, ..calm() };
    assert_right(&[
        Scene {
            name: "an object that cannot have its child",
            asked: "BasicDeployment/web",
            objects: refused("DefinitionTerminating", message),
            surroundings: with_contents(surroundings, vec![instance.clone()]),
            says: "BasicDeployment/web is not ready: BasicReplicaSet/old is being deleted and is held by the finalizer example.com/cleanup",
            advises: "holder of the finalizer",
        },
        Scene {
            name: "the definition",
            asked: "CustomResourceDefinition/basicreplicasets.catena.dev",
            objects: vec![definition()],
            surroundings: with_contents(calm(), vec![instance]),
            says: "CustomResourceDefinition/basicreplicasets.catena.dev is not gone: BasicReplicaSet/old is being deleted",
            advises: "holder of the finalizer",
        },
    ]);
}

/// The child of a former BasicDeployment of the same name.
fn former() -> DynamicObject {
    let owner = json!([{"apiVersion": GROUP, "kind": "BasicDeployment", "name": "web", "uid": "former", "controller": true}]);
    let mut metadata = held("example.com/cleanup");
    metadata["ownerReferences"] = owner;
    object(GROUP, "BasicReplicaSet", "web", None, json!({"metadata": metadata}))
}

#[test]
fn a_former_child_leads_to_its_finalizer_before_and_after_the_first_report() {
    let surroundings = || {
        let found = alone(former()).into_iter().collect();
        Surroundings { related: Related { found, ..Related::default() }, ..calm() }
    };
    let message = "BasicReplicaSet \"web\" of a former BasicDeployment of this name still exists; the new one is created once it is gone";
    let mut new = unreported();
    new["metadata"] = json!({"creationTimestamp": "2026-01-01T00:09:48Z"});
    let says = "BasicDeployment/web is not ready: BasicReplicaSet/web is being deleted and is held by the finalizer example.com/cleanup";
    assert_right(&[
        Scene {
            name: "reported",
            asked: "BasicDeployment/web",
            objects: vec![deployment(not_ready("FormerChildLeaving", message, Value::Null))],
            surroundings: surroundings(),
            says,
            advises: "holder of the finalizer",
        },
        Scene {
            name: "12 s after its creation, not reported",
            asked: "BasicDeployment/web",
            objects: vec![deployment(new)],
            surroundings: surroundings(),
            says,
            advises: "holder of the finalizer",
        },
    ]);
}

#[test]
fn a_child_that_was_left_behind_is_told_when_its_parent_is_asked_about() {
    let parent = || Identity {
        api_version: GROUP.into(),
        kind: "BasicDeployment".into(),
        namespace: Some("shop".into()),
        name: "web".into(),
        uid: String::new(),
    };
    let said = |body: Value| {
        let child = alone(object(GROUP, "BasicReplicaSet", "web", None, body)).unwrap();
        let answer = left_behind::answer(parent(), &child, &calm(), now());
        (answer.sentence, answer.root_cause.unwrap().advice)
    };
    let (sentence, _) = said(json!({"metadata": held("example.com/cleanup")}));
    let expected = "BasicDeployment/web was deleted, and left BasicReplicaSet/web behind: it is being deleted and is held by the finalizer example.com/cleanup";
    assert!(sentence.starts_with(expected), "{sentence}");
    let (sentence, advice) = said(ready());
    assert!(
        sentence
            .starts_with("BasicDeployment/web was deleted, and left BasicReplicaSet/web behind: it runs on"),
        "{sentence}"
    );
    assert!(advice.contains("kubectl -n shop delete basicreplicaset.catena.dev/web"), "{advice}");
    let mut orphan = ready();
    orphan["metadata"] = json!({"labels": {"catena.dev/deployment-uid": "former"}});
    assert_right(&[Scene {
        name: "asked about the child",
        asked: "BasicReplicaSet/web",
        objects: vec![object(GROUP, "BasicReplicaSet", "web", None, orphan)],
        surroundings: calm(),
        says: "BasicReplicaSet/web is ready: 3/3 serve.",
        advises: "left behind by a BasicDeployment that was deleted",
    }]);
}
