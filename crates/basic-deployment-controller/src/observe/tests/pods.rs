//! The pod that keeps a child from serving.

use basic_deployment_controller::{child::Child, child_kind::ChildKind};
use catena_api::BlockedBy;

use super::*;
use crate::observe::pods;

const PODS: &str = "/api/v1/namespaces/shop/pods";
const SETS: &str = "/apis/apps/v1/namespaces/shop/replicasets";

/// A kind whose children control pods, or `ReplicaSets` with pods of their current revision.
fn child_kind(through_sets: bool) -> Value {
    let controller = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "resource": "replicasets", "revisionAnnotation": "revision",
    });
    let mut pods = json!({"selector": "status.selector"});
    if through_sets {
        pods["controller"] = controller;
    }
    json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "contract": {"pods": pods}})
}

/// A child that does not serve, whose status names a pod to look for.
fn stuck() -> Value {
    let mut object = child_object("web", "child");
    object["status"]["active"] = 1.into();
    object["metadata"]["annotations"]["revision"] = "2".into();
    object
}

fn controlled_by(kind: &str, name: &str, uid: &str) -> Value {
    let api_version = if kind == "ReplicaSet" { "apps/v1" } else { "catena.dev/v1alpha1" };
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true}])
}

fn pod(name: &str, owners: &Value, reason: &str) -> Value {
    let waiting = json!([{"name": "main", "state": {"waiting": {"reason": reason, "message": "why"}}}]);
    json!({
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners},
        "status": {"containerStatuses": waiting},
    })
}

fn own_pod(name: &str) -> Value {
    pod(name, &controlled_by("BasicReplicaSet", "web", "child"), "ImagePullBackOff")
}

fn list(pods: &[Value], token: &str) -> Answer {
    Answer::Object(json!({"metadata": {"continue": token}, "items": pods}))
}

/// The set that a pod names as its controller.
fn set(uid: &str, owner: &str, revision: &str) -> Answer {
    let owners = controlled_by("BasicReplicaSet", "web", owner);
    let annotations = json!({"revision": revision});
    Answer::Object(
        json!({"metadata": {"name": "web-2", "uid": uid, "annotations": annotations, "ownerReferences": owners}}),
    )
}

/// The finding for these answers, and the requests for it.
async fn found(
    through_sets: bool,
    answer: impl FnMut(&Sent) -> Answer + Send + 'static,
) -> (Result<Option<BlockedBy>, String>, Vec<String>) {
    let (client, log) = answering(answer);
    let kind: Arc<ChildKind> = serde_json::from_value(child_kind(through_sets)).map(Arc::new).unwrap();
    let child = Child::of(serde_json::from_value(stuck()).unwrap(), &kind);
    let found = pods::blocker(&client, &child, kind.fields().pods.as_ref().unwrap()).await;
    let asked = log.take().into_iter().map(|sent| sent.uri).collect();
    (found.map_err(|error| error.to_string()), asked)
}

fn name(found: &Result<Option<BlockedBy>, String>) -> Option<&str> {
    found.as_ref().unwrap().as_ref().map(|blocker| &*blocker.name)
}

#[tokio::test]
async fn the_first_pod_with_a_known_trouble_is_found_by_the_selector() {
    let starting = pod("web-a", &controlled_by("BasicReplicaSet", "web", "child"), "ContainerCreating");
    let (found, asked) =
        found(false, move |_| list(&[starting.clone(), own_pod("web-b"), own_pod("web-c")], "")).await;
    let blocker = found.unwrap().unwrap();
    assert_eq!((&*blocker.api_version, &*blocker.kind, &*blocker.name), ("v1", "Pod", "web-b"));
    assert_eq!((&*blocker.reason, &*blocker.message), ("ImagePullBackOff", "why"));
    assert!(blocker.since.is_some());
    assert_eq!(asked, [format!("{PODS}?&labelSelector=a%3Db&limit=100")]);
}

#[tokio::test]
async fn a_pod_that_has_been_starting_for_long_is_found_if_no_other_is_in_trouble() {
    let starting = pod("web-a", &controlled_by("BasicReplicaSet", "web", "child"), "ContainerCreating");
    let (found, _) = found(false, move |_| list(std::slice::from_ref(&starting), "")).await;
    assert_eq!(found.unwrap().unwrap().reason, "NotReady");
}

#[tokio::test]
async fn the_pod_of_another_owner_is_never_blamed() {
    let foreign = |owners: Value| pod("web-a", &owners, "ImagePullBackOff");
    for owners in
        [json!([]), controlled_by("BasicReplicaSet", "web", "former"), controlled_by("ReplicaSet", "x", "y")]
    {
        let pods = [foreign(owners), own_pod("web-b")];
        let (found, _) = found(false, move |_| list(&pods, "")).await;
        assert_eq!(name(&found), Some("web-b"));
    }
}

#[tokio::test]
async fn a_controller_of_pods_is_looked_up_once_and_believed_by_uid_and_revision() {
    let owners = controlled_by("ReplicaSet", "web-2", "set");
    let pods = [pod("web-a", &owners, "ImagePullBackOff"), pod("web-b", &owners, "ImagePullBackOff")];
    let cases = [
        (set("set", "child", "2"), Some("web-a")),
        (set("another", "child", "2"), None),
        (set("set", "another", "2"), None),
        (set("set", "child", "1"), None),
        (MISSING, None),
    ];
    for (controller, expected) in cases {
        let (pods, told) = (pods.clone(), controller.clone());
        let answer =
            move |sent: &Sent| if sent.uri.starts_with(SETS) { told.clone() } else { list(&pods, "") };
        let (found, asked) = found(true, answer).await;
        assert_eq!(name(&found), expected, "{controller:?}");
        assert_eq!(asked[1..], [format!("{SETS}/web-2")]);
    }
}

#[tokio::test]
async fn a_controller_of_another_kind_or_with_an_impossible_name_is_not_asked_for() {
    let pods = [
        pod("web-a", &controlled_by("ReplicaSet", "?watch=true", "set"), "ImagePullBackOff"),
        own_pod("web-b"),
    ];
    let (found, asked) = found(true, move |_| list(&pods, "")).await;
    assert_eq!((name(&found), asked.len()), (None, 1));
}

#[tokio::test]
async fn a_look_has_an_end_however_many_pods_and_controllers_there_are() {
    let ready = json!({"metadata": {"name": "web-a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let (nothing, asked) = found(false, move |_| list(std::slice::from_ref(&ready), "next")).await;
    assert_eq!((name(&nothing), asked.len()), (None, 5));
    assert!(asked[1].contains("continue=next"), "{asked:?}");

    let pods: Vec<_> = (0..100)
        .map(|number| {
            let owners = controlled_by("ReplicaSet", &format!("web-{number}"), &format!("set-{number}"));
            pod(&format!("web-{number}"), &owners, "ImagePullBackOff")
        })
        .collect();
    let answer = move |sent: &Sent| if sent.uri.starts_with(SETS) { MISSING } else { list(&pods, "") };
    let (nothing, asked) = found(true, answer).await;
    assert_eq!((name(&nothing), asked.len()), (None, 11));
}

#[tokio::test]
async fn one_pod_that_cannot_be_read_spoils_no_other() {
    let odd = json!({"metadata": {"name": "web-a"}, "status": 1});
    let (found, _) = found(false, move |_| list(&[odd.clone(), own_pod("web-b")], "")).await;
    assert_eq!(name(&found), Some("web-b"));
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_says_why() {
    let (forbidden, _) = found(false, |_| FORBIDDEN).await;
    let message = forbidden.unwrap_err();
    assert!(message.starts_with("the pods of BasicReplicaSet \"web\" cannot be read: "), "{message}");
    let (silent, _) = found(false, |_| Answer::Silence).await;
    assert!(silent.unwrap_err().contains("no answer within 10 s"));
}

#[tokio::test]
async fn a_look_is_not_repeated_at_once_and_its_failure_holds_up_nothing() {
    for answer in [list(&[own_pod("web-a")], ""), FORBIDDEN] {
        let settings = settings_of(&child_kind(false));
        let listed = vec![stored(), ("basicreplicasets", stuck())];
        let (told, is_found) = (answer.clone(), matches!(answer, Answer::Object(_)));
        let cluster = Cluster::with(settings, listed, move |_| told.clone()).await;
        let mut deployment = deployment();
        let blocker = BlockedBy { kind: "Pod".into(), name: "web-a".into(), ..BlockedBy::default() };
        let status = BasicDeploymentStatus { blocked_by: Some(blocker), ..Default::default() };
        deployment.status = Some(status);
        for requests in [1, 0] {
            let observed = cluster.observe(deployment.clone(), Backoffs::default()).await.unwrap();
            assert_eq!(observed.look.unwrap().found.is_ok(), is_found);
            let asked = cluster.asked();
            assert_eq!(asked, vec![format!("GET {PODS}"); requests]);
        }
    }
}
