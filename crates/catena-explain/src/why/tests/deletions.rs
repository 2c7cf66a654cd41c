//! Scenes of deletions: terminating namespaces and definitions, and children that are left behind.

use catena_cluster::{BASIC_DEPLOYMENTS, Identity, Target, testing::serving as serving_cluster};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{
    scene::*,
    scenes::{Scene, assert_right},
};
use crate::{
    grow,
    why::{
        deletion::resources_left,
        explanation,
        facts::{Related, Surroundings, Warning},
        read::{alone, read_related},
    },
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
            advises: "find the controller that removes the finalizer",
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
            advises: "find the controller that removes the finalizer",
        },
        Scene {
            name: "a protected object whose backup would go to the same namespace",
            asked: "BasicDeployment/web",
            objects: vec![deployment(deleted(ready(), protected))],
            surroundings: in_terminating(),
            says: "BasicDeployment/web is held by backup-controller until it is backed up, and the namespace shop of its backup is being deleted (NamespaceTerminating",
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
            advises: "find the controller that removes the finalizer",
        },
        Scene {
            name: "the definition",
            asked: "CustomResourceDefinition/basicreplicasets.catena.dev",
            objects: vec![definition()],
            surroundings: with_contents(calm(), vec![instance]),
            says: "CustomResourceDefinition/basicreplicasets.catena.dev is not gone: BasicReplicaSet/old in namespace shop is being deleted",
            advises: "find the controller that removes the finalizer",
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
    let mut blocked = former();
    blocked.data["status"] = json!({"blockedBy": {
        "apiVersion": GROUP, "kind": "BasicReplicaSet", "name": "web", "reason": "Terminating", "message": "it is being deleted",
    }});
    let mut itself = surroundings();
    itself.related.found = alone(blocked).into_iter().collect();
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
            advises: "find the controller that removes the finalizer",
        },
        Scene {
            name: "12 s after its creation, not reported",
            asked: "BasicDeployment/web",
            objects: vec![deployment(new)],
            surroundings: surroundings(),
            says,
            advises: "find the controller that removes the finalizer",
        },
        Scene {
            name: "its status names itself as the blocker",
            asked: "BasicDeployment/web",
            objects: vec![deployment(not_ready("FormerChildLeaving", message, Value::Null))],
            surroundings: itself,
            says,
            advises: "find the controller that removes the finalizer",
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
        let answer = explanation::of_child(parent(), &child, &calm(), now());
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

/// A pod that was deleted, and that a finalizer keeps.
fn kept_pod(owner: &str) -> DynamicObject {
    object("v1", "Pod", "web-0", Some(owner), json!({"metadata": held("example.com/drain")}))
}

/// A Deployment below this owner, whose ReplicaSet counts no pods any more.
fn emptied(name: &str, owner: Option<&str>, mut metadata: Value) -> [DynamicObject; 2] {
    let body = |wanted: i64| json!({"spec": {"replicas": wanted}, "status": {"observedGeneration": 1, "replicas": 0}});
    let mut deployment = body(3);
    deployment["status"]["conditions"] =
        json!([condition("Available", "False", "MinimumReplicasUnavailable", "no pod is available")]);
    let mut set = body(0);
    set["metadata"] = metadata.clone();
    if metadata["deletionTimestamp"].is_string() {
        metadata["ownerReferences"] =
            json!([{"apiVersion": GROUP, "kind": "BasicDeployment", "name": "web", "uid": "former"}]);
    }
    deployment["metadata"] = metadata;
    let above = format!("Deployment/{name}");
    [
        object("apps/v1", "Deployment", name, owner, deployment),
        object("apps/v1", "ReplicaSet", "web", Some(&above), set),
    ]
}

/// The parent waits for the pod, which none of the objects between them counts.
#[test]
fn a_pod_that_a_finalizer_keeps_is_named_also_below_a_child_of_a_mapped_kind() {
    let web = || deployment(not_ready("Progressing", "0 of 3 replicas are serving", Value::Null));
    let says = "is not ready: Pod/web-0 is being deleted and is held by the finalizer example.com/drain (HeldByFinalizer";
    let [child, set] = emptied("web", Some("BasicDeployment/web"), json!({}));
    let objects = [web(), child, set, kept_pod("ReplicaSet/web")];
    for asked in ["BasicDeployment/web", "Deployment/web"] {
        let answer = ask_exactly(asked, &objects, &calm());
        assert!(answer.sentence.starts_with(&format!("{asked} {says}")), "{}", answer.sentence);
    }
    let path: Vec<String> = ask_exactly("BasicDeployment/web", &objects, &calm())
        .evidence
        .iter()
        .map(|evidence| evidence.object.to_string())
        .collect();
    assert_eq!(path, ["Pod/web-0", "ReplicaSet/web", "Deployment/web", "BasicDeployment/web"]);
}

#[test]
fn an_old_child_of_a_mapped_kind_leads_to_the_pod_that_holds_it() {
    let message = "Deployment \"old\" of a former BasicDeployment of this name still exists; the new one is created once it is gone";
    let asked = || deployment(not_ready("FormerChildLeaving", message, Value::Null));
    let told = |below: Vec<DynamicObject>| {
        let [old, set] = emptied("old", None, held("foregroundDeletion"));
        let old = grow("Deployment/old", &[vec![old, set], below].concat());
        let related = Related { found: old.into_iter().collect(), ..Related::default() };
        ask_exactly("BasicDeployment/web", &[asked()], &Surroundings { related, ..calm() }).sentence
    };
    let sentence = told(vec![kept_pod("ReplicaSet/web")]);
    let says = "BasicDeployment/web is not ready: Pod/web-0 is being deleted and is held by the finalizer example.com/drain";
    assert!(sentence.starts_with(says), "{sentence}");
    // Nobody may say that nothing holds it.
    let sentence = told(vec![]);
    assert!(sentence.contains("is deleted after its dependents, of which none was found"), "{sentence}");
}

#[tokio::test]
async fn an_old_child_is_read_with_its_dependents_whatever_its_group() {
    let message = "Deployment \"old\" of a former BasicDeployment of this name still exists";
    let web = deployment(not_ready("FormerChildLeaving", message, Value::Null));
    let (cluster, requests) = serving_cluster(|uri| {
        let metadata = json!({"name": "old", "namespace": "shop", "uid": "o", "deletionTimestamp": THEN});
        uri.ends_with("/apis/apps/v1/namespaces/shop/deployments/old").then(|| json!({"metadata": metadata}))
    });
    let mut surroundings = Surroundings::default();
    let web = alone(web).unwrap();
    read_related(&cluster, &web, &web, &mut surroundings).await;
    let found: Vec<String> =
        surroundings.related.found.iter().map(|found| found.identity.to_string()).collect();
    assert_eq!(found, ["Deployment/old"], "{requests:?}");
}

#[test]
fn a_claim_that_a_pod_uses_is_gone_once_none_does() {
    for (kind, finalizer, user) in [
        ("PersistentVolumeClaim", "kubernetes.io/pvc-protection", "until no pod uses it"),
        ("PersistentVolume", "kubernetes.io/pv-protection", "until no claim uses it"),
    ] {
        let held = object("v1", kind, "data", None, json!({"metadata": held(finalizer)}));
        let cause = ask_exactly(&format!("{kind}/data"), &[held], &calm()).root_cause.unwrap();
        assert!(cause.meaning.ends_with(user), "{}", cause.meaning);
        assert!(cause.advice.contains("kubectl -n shop describe persistentvolume"), "{}", cause.advice);
    }
}

#[test]
fn the_words_of_an_object_that_a_finalizer_keeps_are_told() {
    let service = object(
        "v1",
        "Service",
        "web",
        None,
        json!({"metadata": held("service.kubernetes.io/load-balancer-cleanup")}),
    );
    let warning = Warning {
        about: "Service/web".into(),
        reason: "SyncLoadBalancerFailed".into(),
        message: "no quota".into(),
        at: THEN.parse().ok(),
        ..Warning::default()
    };
    let synced = condition("Synced", "False", "BucketNotEmpty", "delete its objects first");
    let again = condition("Progressing", "False", "BucketNotEmpty", "delete its objects first");
    let status = json!({"conditions": [synced, condition("Ready", "True", "Available", ""), again]});
    let bucket = deleted(json!({"status": status}), held("finalizer.example.com"));
    let bucket = object("s3.example.com/v1", "Bucket", "logs", None, bucket);
    let surroundings = Surroundings { warnings: vec![warning], ..calm() };
    for (asked, object, message) in [
        ("Service/web", service, "Warning SyncLoadBalancerFailed (3m ago): no quota"),
        ("Bucket/logs", bucket, "it reports Synced False: BucketNotEmpty, delete its objects first"),
    ] {
        let cause = ask_exactly(asked, &[object], &surroundings).root_cause.unwrap();
        assert_eq!((&*cause.reason, &*cause.message), ("HeldByFinalizer", message));
    }
}

#[test]
fn a_held_object_that_backup_controller_may_not_write_names_who_refuses_it() {
    let policy = "configmaps \"kept\" is forbidden: ValidatingAdmissionPolicy 'no-touch' with binding 'b' denied request: no";
    let told = |written: &str, report: Value| {
        let mut metadata = held("catena.dev/backup");
        metadata["managedFields"] = json!([{"manager": "backup-controller", "time": written}]);
        metadata["annotations"] = json!({"catena.dev/backup-status": report.to_string()});
        let warning = Warning {
            about: "ConfigMap/kept".into(),
            by: "backup-controller".into(),
            reason: "Forbidden".into(),
            message: policy.into(),
            at: "2026-01-01T00:08:00Z".parse().ok(),
            ..Warning::default()
        };
        let kept = object("v1", "ConfigMap", "kept", None, json!({"metadata": metadata}));
        let surroundings = Surroundings { warnings: vec![warning], ..calm() };
        ask_exactly("ConfigMap/kept", &[kept], &surroundings).root_cause.unwrap()
    };
    let cause = told(THEN, Value::Null);
    let says = "is held by backup-controller until it is backed up, and has a write refused by a ValidatingAdmissionPolicy (no-touch)";
    assert_eq!((&*cause.meaning, &*cause.message), (says, policy));
    assert_eq!(cause.advice, "follow the message of the policy, or ask its author");
    let running =
        json!({"uid": "ConfigMap/kept", "reason": "BackupRunning", "message": "waiting for the backup"});
    assert_eq!(told(THEN, running.clone()).reason, "Forbidden");
    // It has written since.
    assert_eq!(told("2026-01-01T00:09:00Z", running).reason, "BackupRunning");
}

#[test]
fn a_backup_that_never_comes_is_not_waited_for() {
    let told = |reason: &str, message: &str, found: Vec<DynamicObject>| {
        let report = json!({"uid": "ConfigMap/kept", "reason": reason, "message": message, "backup": "Job vault/kept-1"});
        let mut metadata = held("catena.dev/backup");
        metadata["annotations"] = json!({"catena.dev/backup-status": report.to_string()});
        let kept = object("v1", "ConfigMap", "kept", None, json!({"metadata": metadata}));
        let related = Related { found: found.into_iter().filter_map(alone).collect(), ..Related::default() };
        let surroundings = Surroundings { related, ..calm() };
        let cause = ask_exactly("ConfigMap/kept", &[kept], &surroundings).root_cause.unwrap();
        assert!(cause.advice.contains("release configmap/kept"), "{}", cause.advice);
        assert_eq!((&*cause.message, cause.is_progress), (message, false));
        (cause.meaning, cause.advice)
    };
    let typed = "waiting for the backup: backups.it.succeeded \"object.x > 'x'\" has no value: > is not possible with 1 and \"x\"; check the fields that it reads";
    let (meaning, advice) = told("BackupUnclear", typed, vec![]);
    assert!(meaning.ends_with("cannot determine whether its backup has succeeded"), "{meaning}");
    assert!(advice.starts_with("correct the expression that the message quotes"), "{advice}");
    let early = "waiting for the backup: the field status, which backups.it.succeeded reads, is not set yet";
    let (_, advice) = told("BackupRunning", early, vec![]);
    assert!(advice.contains("; wait for the backup"), "{advice}");
    let right = "jobs.batch is forbidden: User \"system:serviceaccount:c:b\" cannot create resource \"jobs\" in API group \"batch\" in the namespace \"vault\"";
    let (meaning, advice) = told("Forbidden", right, vec![]);
    assert!(
        meaning
            .ends_with("until it is backed up by Job vault/kept-1, and has a controller that lacks a right"),
        "{meaning}"
    );
    assert!(advice.starts_with("grant the right"), "{advice}");
    let mut vault = namespace();
    vault.metadata.name = Some("vault".into());
    let terminating =
        "the namespace \"vault\" is being deleted and accepts no new Job; set backups.it.namespace";
    for (reason, message, found) in
        [("Forbidden", right, vec![vault]), ("NamespaceTerminating", terminating, vec![])]
    {
        let (meaning, advice) = told(reason, message, found);
        assert!(meaning.ends_with("the namespace vault of its backup is being deleted"), "{meaning}");
        assert!(advice.starts_with("set backups.NAME.namespace"), "{advice}");
    }
}

#[test]
fn an_object_whose_dependents_are_of_unusual_kinds_is_not_left_to_the_garbage_collector() {
    let waits = object("v1", "Secret", "key", None, json!({"metadata": held("foregroundDeletion")}));
    let cause = ask_exactly("Secret/key", &[waits], &calm()).root_cause.unwrap();
    assert!(cause.meaning.ends_with("none was found among the usual kinds"), "{}", cause.meaning);
    assert!(cause.advice.contains("tree secret/key --all-kinds"), "{}", cause.advice);
}

#[test]
fn two_objects_that_name_each_other_as_blockers_end_the_walk() {
    let body =
        |other: &str| json!({"status": {"blockedBy": {"kind": other, "name": "web", "reason": "Waits"}}});
    let of = |kind: &str, other: &str| object("example.com/v1", kind, "web", None, body(other));
    let found = [of("Bay", "Shop"), of("Shop", "Bay")].into_iter().filter_map(alone).collect();
    let surroundings = Surroundings { related: Related { found, ..Related::default() }, ..calm() };
    let answer = ask_exactly("Shop/web", &[of("Shop", "Bay")], &surroundings);
    let expected = "Shop/web is not ready: Bay/web reports that Shop/web blocks it (Waits).";
    assert_eq!(answer.sentence, expected);
}

/// Whoever may write statuses must not be able to hang those who ask.
#[test]
fn objects_of_which_each_names_one_far_below_it_are_walked_once() {
    let name = |level: usize| format!("web-{level}");
    for far in [2, 28] {
        let objects: Vec<_> = (0..=28)
            .map(|level| {
                let status = if level == 28 {
                    json!({"conditions": [condition("Ready", "True", "", "")]})
                } else {
                    let blocker =
                        json!({"kind": "Shop", "name": name(28.min(level + far)), "reason": "Waits"});
                    json!({"conditions": [condition("Ready", "False", "Waits", "")], "blockedBy": blocker})
                };
                let owner = level.checked_sub(1).map(|above| format!("Shop/{}", name(above)));
                object("example.com/v1", "Shop", &name(level), owner.as_deref(), json!({"status": status}))
            })
            .collect();
        let began = std::time::Instant::now();
        let cause = ask_exactly("Shop/web-0", &objects, &calm()).root_cause.unwrap();
        assert_eq!(cause.object.name, name(27));
        assert!(began.elapsed().as_secs() < 5, "{far}: {:?}", began.elapsed());
    }
}

#[test]
fn a_held_object_leads_to_the_pod_of_its_backup_that_fails() {
    let report = json!({
        "uid": "BasicDeployment/web", "state": "Running", "since": THEN, "reason": "BackupRunning",
        "backup": "Job vault/web-1", "message": "the backup is running",
    });
    let metadata = json!({
        "deletionTimestamp": THEN, "finalizers": ["catena.dev/backup"],
        "annotations": {"catena.dev/backup-status": report.to_string()},
    });
    let held = deployment(deleted(ready(), metadata));
    let told = |reason: &str| {
        let metadata =
            json!({"namespace": "vault", "labels": {"catena.dev/backup-of": "BasicDeployment/web"}});
        let body = json!({"metadata": metadata, "status": {"active": 1}});
        let mut pod = waiting("web-1-x", reason, "not found");
        pod.metadata.owner_references.as_mut().unwrap()[0].uid = "Job/web-1".into();
        let job = grow("Job/web-1", &[object("batch/v1", "Job", "web-1", None, body), pod]);
        let related = Related { found: job.into_iter().collect(), ..Related::default() };
        let surroundings = Surroundings { related, ..calm() };
        ask_exactly("BasicDeployment/web", std::slice::from_ref(&held), &surroundings)
    };
    let answer = told("ImagePullBackOff");
    let lets_go = |remark: &String| {
        remark.starts_with("BasicDeployment/web is held until it is backed up: ")
            && remark.contains("release basicdeployment.catena.dev/web --reason")
    };
    assert!(answer.remarks.iter().any(lets_go), "{:?}", answer.remarks);
    let fails = answer.root_cause.unwrap();
    assert_eq!(
        (fails.object.to_string().as_str(), fails.reason.as_str()),
        ("Pod/web-1-x", "ImagePullBackOff")
    );
    let advice = "correct the image or the pull secret in the template of the backup Job/web-1, in the values of backup-controller";
    assert_eq!(fails.advice, advice);
    assert_eq!(told("ContainerCreating").root_cause.unwrap().reason, "BackupRunning");
    // Its Job says nothing of the pods that cannot be created: only its warning does.
    let job = object(
        "batch/v1",
        "Job",
        "web-1",
        None,
        json!({"metadata": {"namespace": "vault"}, "status": {"active": 0}}),
    );
    let related = Related { found: grow("Job/web-1", &[job]).into_iter().collect(), ..Related::default() };
    let refused = Warning {
        about: "Job/web-1".into(),
        reason: "FailedCreate".into(),
        message: "pods \"web-1-x\" is forbidden: violates PodSecurity \"restricted:latest\": x".into(),
        ..Warning::default()
    };
    let surroundings = Surroundings { related, warnings: vec![refused], ..calm() };
    let fails = ask_exactly("BasicDeployment/web", &[held], &surroundings).root_cause.unwrap();
    assert_eq!(fails.object.to_string(), "Job/web-1");
    assert!(fails.meaning.contains("Pod Security level"), "{}", fails.meaning);
}

#[test]
fn a_held_object_leads_to_its_backup_that_does_not_go_on() {
    let report = |backup: &str| {
        json!({
            "uid": "BasicDeployment/web", "state": "Running", "since": THEN, "reason": "BackupRunning",
            "backup": format!("{backup} vault/web-1"), "message": "the backup is running",
        })
    };
    let told = |backup: Vec<DynamicObject>, warnings: Vec<Warning>| {
        let metadata = json!({
            "deletionTimestamp": THEN, "finalizers": ["catena.dev/backup"],
            "annotations": {"catena.dev/backup-status": report(&backup[0].types.as_ref().unwrap().kind).to_string()},
        });
        let held = deployment(deleted(ready(), metadata));
        let uid = backup[0].metadata.uid.clone().unwrap();
        let related = Related { found: grow(&uid, &backup).into_iter().collect(), ..Related::default() };
        let surroundings = Surroundings { related, warnings, ..calm() };
        let cause = ask_exactly("BasicDeployment/web", &[held], &surroundings).root_cause.unwrap();
        (cause.object.to_string(), cause.reason)
    };
    let backup = |api_version: &str, kind: &str, mut body: Value| {
        body["metadata"] = json!({"namespace": "vault"});
        object(api_version, kind, "web-1", None, body)
    };
    let late =
        [condition("Failed", "True", "DeadlineExceeded", "Job was active longer than specified deadline")];
    for (backup, reason) in [
        (backup("batch/v1", "Job", json!({"spec": {"suspend": true}})), "Suspended"),
        (backup("batch/v1", "Job", json!({"status": {"conditions": late}})), "DeadlineExceeded"),
        (backup("postgresql.cnpg.io/v1", "Backup", json!({"status": {"phase": "failed"}})), "failed"),
    ] {
        let name = format!("{}/web-1", backup.types.as_ref().unwrap().kind);
        assert_eq!(told(vec![backup], vec![]), (name, reason.to_owned()));
    }
    let mut pod = waiting("web-1-x", "ContainerCreating", "");
    pod.metadata.owner_references.as_mut().unwrap()[0].uid = "Job/web-1".into();
    let warning = Warning {
        about: "Pod/web-1-x".into(),
        reason: "FailedMount".into(),
        message: "no such secret".into(),
        ..Warning::default()
    };
    let below = vec![backup("batch/v1", "Job", json!({"status": {"active": 1}})), pod];
    assert_eq!(told(below, vec![warning]), ("Pod/web-1-x".to_owned(), "FailedMount".to_owned()));
}

#[tokio::test]
async fn the_events_of_the_namespace_of_a_backup_are_read() {
    let report = json!({"uid": "BasicDeployment/web", "backup": "Job vault/web-1"}).to_string();
    let metadata = json!({
        "deletionTimestamp": THEN, "finalizers": ["catena.dev/backup"], "annotations": {"catena.dev/backup-status": report},
    });
    let (cluster, _) = serving_cluster(|uri| {
        let event = json!({"metadata": {"name": "e"}, "type": "Warning", "reason": "FailedCreate", "involvedObject": {"uid": "j"}});
        let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [event]});
        uri.contains("/namespaces/vault/events?").then_some(list)
    });
    let mut surroundings = Surroundings::default();
    let held = alone(deployment(deleted(ready(), metadata))).unwrap();
    read_related(&cluster, &held, &held, &mut surroundings).await;
    let read: Vec<_> = surroundings.warnings.iter().map(|warning| warning.reason.as_str()).collect();
    assert_eq!(read, ["FailedCreate"]);
}

#[tokio::test]
async fn the_surroundings_of_a_child_that_was_left_behind_are_read_once() {
    let child = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "s", "labels": {"catena.dev/deployment-uid": "former"}},
    });
    let (cluster, requests) = serving_cluster(move |uri| {
        if uri.ends_with("/namespaces/shop") {
            return Some(json!({"metadata": {"name": "shop", "uid": "n"}}));
        }
        uri.contains("/basicreplicasets?")
            .then(|| json!({"kind": "List", "apiVersion": "v1", "items": [child]}))
    });
    let target = Target { kind: BASIC_DEPLOYMENTS.into(), name: "web".into() };
    let answer = explanation(&cluster, &target).await.unwrap();
    assert!(answer.sentence.starts_with("BasicDeployment/web was deleted, and left"), "{}", answer.sentence);
    let requests = requests.lock().unwrap();
    let asked = requests.iter().filter(|uri| uri.contains("/deployments?")).count();
    assert_eq!(asked, 1, "{requests:?}");
}

#[test]
fn each_object_that_a_namespace_waits_for_is_counted_beside_the_first() {
    let remaining = |type_: &str, message: &str| condition(type_, "True", "SomeResourcesRemain", message);
    let conditions = [
        remaining(
            "NamespaceContentRemaining",
            "Some resources are remaining: configmaps. has 11 resource instances",
        ),
        remaining(
            "NamespaceFinalizersRemaining",
            "Some content in the namespace has finalizers remaining: catena.dev/backup in 11 resource instances",
        ),
    ];
    let body = json!({"metadata": {"deletionTimestamp": THEN, "namespace": null}, "status": {"conditions": conditions}});
    let shop = object("v1", "Namespace", "shop", None, body);
    let map = object("v1", "ConfigMap", "kept", None, json!({"metadata": held("catena.dev/backup")}));
    let answer = ask_exactly("Namespace/shop", &[shop], &with_contents(calm(), vec![map]));
    let says = "Namespace/shop is not gone: ConfigMap/kept is held by backup-controller";
    assert!(answer.sentence.starts_with(says), "{}", answer.sentence);
    let note = "Namespace/shop is being deleted, and waits for its contents: Some content in the namespace has finalizers remaining: catena.dev/backup in 11 resource instances; Some resources are remaining: configmaps. has 11 resource instances; kubectl catena held --namespace shop --all-kinds lists the objects that wait for a backup, and why";
    assert_eq!(answer.remarks, [note]);
}

#[tokio::test]
async fn a_namespace_leads_to_the_pod_that_hangs_and_to_its_node() {
    let (cluster, _) = serving_cluster(move |uri| {
        let metadata = |name: &str| json!({"name": name, "namespace": "shop", "uid": name, "deletionTimestamp": THEN, "deletionGracePeriodSeconds": 30});
        let path = uri.split('?').next()?;
        Some(match path.rsplit('/').next()? {
            "pods" => json!({"metadata": {}, "items": [{"metadata": metadata("web-1")}]}),
            "web-1" => json!({"metadata": metadata("web-1"), "spec": {"nodeName": "n1"}}),
            _ => return None,
        })
    });
    let left =
        "Some resources are remaining: configmaps. has 1 resource instances, pods. has 1 resource instances";
    let remaining = condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", left);
    let body = json!({"metadata": {"deletionTimestamp": THEN, "namespace": null}, "status": {"conditions": [remaining]}});
    let shop = object("v1", "Namespace", "shop", None, body);
    let (mut surroundings, node) = (calm(), alone(shop.clone()).unwrap());
    read_related(&cluster, &node, &node, &mut surroundings).await;
    let told = ask_exactly("Namespace/shop", std::slice::from_ref(&shop), &surroundings).sentence;
    let says =
        "Namespace/shop is not gone: Pod/web-1 has been shutting down for longer than its grace period";
    assert!(told.starts_with(says), "{told}");
    // So do its claims, which would be told otherwise.
    let claim = object(
        "v1",
        "PersistentVolumeClaim",
        "data",
        None,
        json!({"metadata": held("kubernetes.io/pvc-protection")}),
    );
    surroundings.related.contents.insert(0, alone(claim).unwrap());
    let told = ask_exactly("Namespace/shop", std::slice::from_ref(&shop), &surroundings).sentence;
    assert!(told.starts_with(says), "{told}");
    // Something else may never end by itself.
    let gadget =
        object("example.com/v1", "Gadget", "kept", None, json!({"metadata": held("a.example.com/z")}));
    surroundings.related.contents.push(alone(gadget).unwrap());
    let told = ask_exactly("Namespace/shop", std::slice::from_ref(&shop), &surroundings).sentence;
    surroundings.related.contents.pop();
    assert!(
        told.starts_with("Namespace/shop is not gone: Gadget/kept is being deleted and is held by"),
        "{told}"
    );
    // It was looked for.
    assert!(surroundings.gaps.iter().any(|gap| gap.what == "Node/n1"), "{:?}", surroundings.gaps);
    let unknown = condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.");
    let metadata = json!({"namespace": null});
    let body = json!({"metadata": metadata, "status": {"conditions": [unknown]}});
    surroundings.related.found.extend(alone(object("v1", "Node", "n1", None, body)));
    let told = ask_exactly("Namespace/shop", &[shop], &surroundings).sentence;
    assert!(told.starts_with("Namespace/shop is not gone: Node/n1 has stopped reporting"), "{told}");
}

#[test]
fn contents_that_do_not_go_are_known_by_both_forms_of_their_conditions() {
    let told = |type_: &str, message: &str| {
        let conditions = [condition(type_, "True", "ContentDeletionFailed", message)];
        let body = json!({"metadata": {"deletionTimestamp": THEN, "namespace": null}, "status": {"conditions": conditions}});
        resources_left(&alone(object("v1", "Namespace", "shop", None, body)).unwrap())
    };
    let left = "Some resources are remaining: gadgets.example.com has 1 resource instances, pods. has 2 resource instances";
    assert_eq!(told("NamespaceContentRemaining", left), ["gadgets.example.com", "pods"]);
    let failing = |gvr: &str| {
        format!(
            "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop for gvr: {gvr}"
        )
    };
    assert_eq!(told("NamespaceDeletionContentFailure", &failing("/v1, Resource=pods")), ["pods"]);
    assert_eq!(
        told("NamespaceDeletionContentFailure", &failing("apps/v1, Resource=deployments")),
        ["deployments.apps"]
    );
}

#[test]
fn each_further_finalizer_is_told() {
    let mut metadata = held("a.example.com/z");
    metadata["finalizers"]
        .as_array_mut()
        .unwrap()
        .extend(["catena.dev/backup".into(), "b.example.com/y".into()]);
    let map = object("v1", "ConfigMap", "twice", None, json!({"metadata": metadata}));
    let answer = ask_exactly("ConfigMap/twice", &[map], &calm());
    assert!(answer.sentence.contains("held by the finalizer a.example.com/z ("), "{}", answer.sentence);
    let [backup, last] = &answer.remarks[..] else { panic!("{:?}", answer.remarks) };
    assert!(
        backup.starts_with("ConfigMap/twice is held until it is backed up: wait for the backup"),
        "{backup}"
    );
    assert_eq!(last, "ConfigMap/twice is also held by the finalizer b.example.com/y");
}
