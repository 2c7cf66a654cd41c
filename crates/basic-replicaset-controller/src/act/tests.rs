//! Each step: its requests, and the effects of each answer.

use basic_replicaset_controller::{
    Settings,
    observed::Holder,
    pod::PodRow,
    revision::{placeholder, record, revision},
};
use catena_api::{BasicReplicaSetSpec, BasicReplicaSetStatus, LastServed};
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::discovery::ApiResource;
use operator_kit::{
    run::SettingsHandle,
    testing::{
        Answer::{self, Done, Json, Lost, Refusal},
        Sent, answering, in_turn,
    },
};
use operator_templates::Digest;
use pod_state::{Phase, PodProblem, PodState};

use super::*;

const MANAGER: &str = "basic-replicaset-controller";
const PODS: &str = "/api/v1/namespaces/shop/pods";

fn set() -> BasicReplicaSet {
    BasicReplicaSet {
        metadata: ObjectMeta {
            name: Some("web".into()),
            namespace: Some("shop".into()),
            uid: Some("set".into()),
            resource_version: Some("7".into()),
            ..ObjectMeta::default()
        },
        spec: BasicReplicaSetSpec { replicas: 1, template: "default".into(), ..Default::default() },
        status: None,
    }
}

fn orphan() -> Arc<PodRow> {
    Arc::new(PodRow {
        namespace: "shop".into(),
        name: "web-x".into(),
        uid: "pod".into(),
        owner: None,
        revision: "r".into(),
        slot: Some(0),
        created: Timestamp::UNIX_EPOCH,
        deletion_cost: 0,
        state: PodState::Ready,
        ready_since: None,
        node: "".into(),
        phase: Phase::Running,
        restarts: 0,
    })
}

fn settings() -> Settings {
    let template = "{apiVersion: v1, kind: Pod, metadata: {name: {{ name ~ '-' ~ suffix }}}}";
    serde_json::from_value(json!({"templates": {"default": template}})).unwrap()
}

fn made_from() -> String {
    revision(&settings().templates, &set()).unwrap()
}

fn create() -> Action {
    Action::Create { revision: made_from(), slots: vec![0] }
}

fn name() -> String {
    format!("web-{}", Origin { set: "set", revision: &made_from(), slot: "0" }.suffix())
}

/// Takes a step against a server that gives these answers, and then the last one forever.
async fn take(action: Action, answers: &[Answer]) -> (Vec<Sent>, Result<Requeue, Failures>, Memory) {
    take_for(&set(), action, answers).await
}

/// The same for another set.
async fn take_for(
    set: &BasicReplicaSet,
    action: Action,
    answers: &[Answer],
) -> (Vec<Sent>, Result<Requeue, Failures>, Memory) {
    let (client, log) = answering(in_turn(answers));
    let memory = Memory::default();
    let executor = Executor {
        writer: Writer::over(client, MANAGER),
        memory: memory.clone(),
        revisions: Revisions::new(SettingsHandle::fixed(settings())),
        pods: WriteTarget::unwatched(ApiResource::erase::<Pod>(&())),
    };
    let result = executor.act(set, action).await;
    (log.take(), result, memory)
}

/// A refusal with this code.
fn refused(code: u16) -> Answer {
    let reason = match code {
        404 => "NotFound",
        409 => "AlreadyExists",
        _ => "",
    };
    Refusal(code, reason)
}

/// The effect of an answer: the reported reason, and the slots or pods that are held up; without any, the whole step.
async fn outcome(action: Action, answer: Answer) -> Result<Requeue, (&'static str, Vec<Option<String>>)> {
    let (_, result, _) = take(action, &[answer]).await;
    result.map_err(|Failures { parts, .. }| {
        (parts[0].reason, parts.into_iter().map(|failure| failure.item).collect())
    })
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_created_under_the_name_that_follows_from_its_place_with_all_marks_at_once() {
    let (sent, result, _) = take(create(), &[Done]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    let [Sent { verb, uri, body }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((verb.as_str(), uri.split('?').next()), ("POST", Some(PODS)));
    assert!(uri.contains(&format!("fieldManager={MANAGER}&fieldValidation=Strict")), "{uri}");
    assert_eq!(body["metadata"]["name"], name());
    let label = &made_from()[..LABEL_LENGTH];
    assert_eq!(body["metadata"]["labels"], json!({keys::REPLICA_SET_UID: "set", keys::REVISION: label}));
    assert_eq!(body["metadata"]["annotations"], json!({keys::HASH: made_from(), keys::SLOT: "0"}));
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "set");
    assert_eq!(body["metadata"]["ownerReferences"][0]["controller"], true);
}

#[tokio::test(start_paused = true)]
async fn no_pod_is_made_from_another_content_than_its_revision_says() {
    let decided_before = Action::Create { revision: "former".into(), slots: vec![0, 1, 2] };
    let (sent, result, _) = take(decided_before, &[Done]).await;
    let failure = &result.unwrap_err().parts[0];
    assert_eq!((sent.len(), failure.reason, failure.is_expected), (0, "TemplateChanged", true));
}

/// Whatever the template renders by now, after a restart of this process too.
#[tokio::test(start_paused = true)]
async fn a_pod_of_the_revision_that_served_last_is_made_from_its_record() {
    let recorded = |suffix: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "spec": {"hostname": "served"},
            "metadata": {"name": format!("web-{suffix}"), "namespace": "shop"},
        })
    };
    let former = Digest::sha256(&recorded("").to_string());
    let last_served = Some(record(&former, &set(), &recorded(&placeholder(&former))));
    let owner = BasicReplicaSet {
        status: Some(BasicReplicaSetStatus { last_served, ..BasicReplicaSetStatus::default() }),
        ..set()
    };
    let create = Action::Create { revision: former.clone(), slots: vec![2] };
    let (sent, result, _) = take_for(&owner, create, &[Done]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    let suffix = Origin { set: "set", revision: &former, slot: "2" }.suffix();
    let metadata = &sent[0].body["metadata"];
    assert_eq!(metadata["name"], format!("web-{suffix}"));
    assert_eq!(metadata["annotations"][keys::HASH], former);
    assert_eq!(metadata["labels"][keys::REVISION], former[..LABEL_LENGTH]);
    assert_eq!(sent[0].body["spec"], recorded("")["spec"]);

    let unknown = "strict decoding error: unknown field \"metadata.name\"";
    let refused = json!({"kind": "Status", "status": "Failure", "code": 400, "reason": "BadRequest", "message": unknown});
    let blames_template = async |revision: &str| {
        let create = Action::Create { revision: revision.to_owned(), slots: vec![2] };
        let (_, result, _) = take_for(&owner, create, &[Json(400, refused.clone())]).await;
        result.unwrap_err().parts[0].message.contains("the template \"default\" sets it")
    };
    assert!(blames_template(&made_from()).await);
    assert!(!blames_template(&former).await, "its record sets it");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_noted_for_the_next_pass_to_look_whose_it_is() {
    let (sent, result, memory) = take(create(), &[refused(409)]).await;
    assert_eq!((sent.len(), result.unwrap()), (1, Requeue::Now));
    let taken = memory.names_taken("set");
    assert_eq!(taken.get(&0), Some(&Taken { name: name(), revision: made_from() }));
}

#[tokio::test(start_paused = true)]
async fn what_keeps_a_pod_from_being_created_holds_up_all_creates() {
    let step = || vec![None];
    for (answer, reason) in [
        (refused(403), "Forbidden"),
        (refused(422), "Invalid"),
        (refused(429), "ServerBusy"),
        (refused(500), "WriteFailed"),
        (Lost, "WriteFailed"),
    ] {
        assert_eq!(outcome(create(), answer.clone()).await, Err((reason, step())), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_is_asked_again_and_a_lost_answer_is_not_repeated_blindly() {
    let (sent, result, _) = take(create(), &[refused(429), refused(429), Done]).await;
    assert_eq!((sent.len(), result.unwrap()), (3, Requeue::Written));
    let (sent, result, _) = take(create(), &[Lost]).await;
    assert_eq!((sent.len(), result.is_err()), (1, true), "the next pass meets its own pod, or none");
}

#[tokio::test(start_paused = true)]
async fn names_of_others_hold_up_their_places_alone_and_nothing_is_written() {
    let names = vec![TakenName { slot: 4, name: "web-4".into(), holder: Holder::Other }];
    let (sent, result, _) = take(Action::PassOver(names.clone()), &[Done]).await;
    assert!(sent.is_empty() && result.is_err());
    let outcome = outcome(Action::PassOver(names), Done).await;
    assert_eq!(outcome, Err(("PodNameTaken", vec![Some("4".into())])));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_marked_taken_back_and_deleted_only_as_the_very_pod_that_was_seen() {
    let mark = Action::Mark { name: "web-x".into(), uid: "pod".into(), slot: 3 };
    let (sent, ..) = take(mark, &[Done]).await;
    // Two applies with different fields would each remove those of the other one, such as the owner.
    assert_eq!((sent[0].verb.as_str(), sent[0].body["metadata"]["uid"].as_str()), ("MERGE", Some("pod")));
    assert_eq!(sent[0].body["metadata"]["annotations"], json!({keys::SLOT: "3"}));
    assert!(sent[0].uri.starts_with(&format!("{PODS}/web-x?")), "{}", sent[0].uri);

    let (sent, ..) = take(Action::Adopt(vec![orphan()]), &[Done]).await;
    assert_eq!((sent[0].verb.as_str(), sent[0].body["metadata"]["uid"].as_str()), ("APPLY", Some("pod")));
    assert_eq!(sent[0].body["metadata"]["ownerReferences"][0]["uid"], "set");

    let (sent, ..) = take(Action::Delete(vec![orphan()]), &[Done]).await;
    assert_eq!(
        (sent[0].verb.as_str(), sent[0].body["preconditions"]["uid"].as_str()),
        ("DELETE", Some("pod"))
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_pod_that_ended_and_is_deleted_for_that_is_remembered_until_it_is_over() {
    let ended = |slot| {
        let problem = PodProblem {
            reason: "OutOfcpu".into(),
            message: "".into(),
            since: Timestamp::UNIX_EPOCH,
            is_conclusive: true,
        };
        let state = PodState::Finished(problem);
        Arc::new(PodRow { state, slot: Some(slot), ..(*orphan()).clone() })
    };
    let (_, _, memory) = take(Action::Delete(vec![orphan()]), &[Done]).await;
    assert_eq!(memory.ended("set", |_| false), None, "it served, and is replaced");
    let (_, _, memory) = take(Action::Delete(vec![orphan(), ended(2), ended(1)]), &[Done]).await;
    assert_eq!(memory.ended("set", |_| false), Some(ended(1)));
    assert_eq!(memory.ended("set", |_| true), None);
    assert_eq!(memory.ended("set", |_| false), None, "it is forgotten");
}

#[tokio::test(start_paused = true)]
async fn an_owner_reference_gets_the_present_version_and_nothing_else_of_the_pod_changes() {
    let live = |uid: &str, api_version: &str| {
        let owner =
            json!({"apiVersion": api_version, "kind": "BasicReplicaSet", "name": "web", "uid": "set"});
        Json(200, json!({"metadata": {"uid": uid, "resourceVersion": "9", "ownerReferences": [owner]}}))
    };
    let refresh = || Action::RefreshOwner(vec![orphan()]);
    let (sent, result, _) = take(refresh(), &[live("pod", "catena.dev/v1alpha0"), Done]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    let [read, Sent { verb, body, .. }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((read.verb.as_str(), verb.as_str()), ("GET", "AMEND"));
    let path = "/metadata/ownerReferences/0/apiVersion";
    assert_eq!(
        *body,
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "pod"},
            {"op": "test", "path": "/metadata/resourceVersion", "value": "9"},
            {"op": "replace", "path": path, "value": "catena.dev/v1alpha1"},
        ])
    );
    for (uid, api_version) in [("pod", "catena.dev/v1alpha1"), ("another", "catena.dev/v1alpha0")] {
        let (sent, result, _) = take(refresh(), &[live(uid, api_version)]).await;
        assert_eq!((sent.len(), result.unwrap()), (1, Requeue::Written), "{uid} {api_version}");
    }
    assert_eq!(outcome(refresh(), refused(404)).await, Ok(Requeue::Written));
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_is_refused_holds_up_its_pod_alone_and_one_that_is_gone_is_done() {
    let delete = || Action::Delete(vec![orphan()]);
    assert_eq!(outcome(delete(), refused(404)).await, Ok(Requeue::Written));
    let no_webhook =
        "Internal error occurred: failed calling webhook \"pods.example.com\": connection refused";
    let no_webhook = json!({"kind": "Status", "status": "Failure", "code": 500, "message": no_webhook});
    for (answer, reason) in [
        (refused(403), "DeleteRefused"),
        (refused(422), "DeleteRefused"),
        (Json(500, no_webhook), "DeleteRefused"),
        (refused(500), "WriteFailed"),
    ] {
        let refused = Err((reason, vec![Some("pod".into())]));
        assert_eq!(outcome(delete(), answer.clone()).await, refused, "{answer:?}");
    }
    for (answer, reason) in [(refused(429), "ServerBusy"), (Lost, "WriteFailed")] {
        assert_eq!(outcome(delete(), answer.clone()).await, Err((reason, vec![None])), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_cannot_be_taken_back_holds_up_itself_alone() {
    let adopt = || Action::Adopt(vec![orphan()]);
    for answer in [refused(403), refused(404), refused(409), refused(422)] {
        let Err((_, items)) = outcome(adopt(), answer.clone()).await else { panic!("{answer:?}") };
        assert_eq!(items, [Some("pod".into())], "{answer:?}");
    }
    assert_eq!(outcome(adopt(), refused(429)).await, Err(("ServerBusy", vec![None])));
}

/// The decision names the revision; it is rendered only when it is written.
#[tokio::test(start_paused = true)]
async fn the_record_of_a_revision_is_written_with_its_pod_and_that_of_another_template_is_kept() {
    let served = |revision: &str| LastServed { revision: revision.into(), ..LastServed::default() };
    let former = LastServed { pod: "{}".into(), ..served("former") };
    let owner = BasicReplicaSet {
        status: Some(BasicReplicaSetStatus { last_served: Some(former), ..BasicReplicaSetStatus::default() }),
        ..set()
    };
    let written = async |revision: &str| {
        let status =
            BasicReplicaSetStatus { last_served: Some(served(revision)), ..BasicReplicaSetStatus::default() };
        let (sent, result, _) = take_for(&owner, Action::WriteStatus(Box::new(status)), &[Done]).await;
        assert_eq!(result.unwrap(), Requeue::Written);
        let mut patch = sent[0].body.as_array().unwrap().iter();
        patch.find(|change| change["path"] == "/status/lastServed").map(|change| change["value"].clone())
    };
    let present = written(&made_from()).await.unwrap();
    assert_eq!(present["revision"], made_from());
    assert!(present["pod"].as_str().unwrap().contains(&placeholder(&made_from())), "{present}");
    assert_eq!(written("no longer rendered").await, None, "it stays");
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_by_itself_and_of_the_very_set() {
    let status = BasicReplicaSetStatus { replicas: 1, ..BasicReplicaSetStatus::default() };
    let (sent, result, _) = take(Action::WriteStatus(Box::new(status.clone())), &[Done]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    let [Sent { verb, uri, body }] = &sent[..] else { panic!("{sent:?}") };
    assert!(verb == "AMEND" && uri.contains("/namespaces/shop/basicreplicasets/web/status"), "{verb} {uri}");
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": "set"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "test", "path": "/status", "value": null},
        {"op": "add", "path": "/status", "value": status},
    ]);
    assert_eq!(*body, patch);
}
