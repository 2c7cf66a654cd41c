//! Each step: its requests, and the effects of each answer.

use std::sync::Arc;

use catena_api::command::BOUND;
use command_kinds::CommandKind;
use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use operator_kit::testing::{
    self,
    Answer::{self, Done, Json, Lost},
    Log, Sent, answering, in_turn, refused,
};
use operator_watch::Failure;
use tokio::time::sleep;

use super::*;
use crate::fixtures;

const MANAGER: &str = "command-binder";
const COMMAND: &str = "/apis/ops.example/v1/namespaces/here/restarts/c";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/here/events";

/// The API server's answer to a JSON patch with a failed test.
const FAILED_TEST: &str = "the server rejected our request due to an error in our request";

type Taken = testing::Taken<Observed, (), ApiError>;

/// A command of a kind with this mode.
fn observed_in(mode: &str, metadata: &Value) -> Observed {
    observed_as(&json!({ "mode": mode }), metadata)
}

/// A command of a kind that has more in its description.
fn observed_as(more: &Value, metadata: &Value) -> Observed {
    let mut file = json!({
        "id": "restarts", "group": "ops.example", "version": "v1", "resource": "restarts", "kind": "Restart",
        "target": {
            "name": "object.spec.target",
            "kinds": [{"group": "apps.example", "version": "v1", "resource": "shops", "kind": "Shop"}],
        },
    });
    json_patch::merge(&mut file, more);
    let kind = Arc::new(CommandKind::compile(serde_json::from_value(file).unwrap()).unwrap());
    let mut object = json!({"metadata": metadata, "spec": {"target": "a"}});
    for (field, value) in [("name", "c"), ("namespace", "here"), ("uid", "command"), ("resourceVersion", "7")]
    {
        object["metadata"][field] = value.into();
    }
    let command = fixtures::command(&kind, serde_json::from_value(object).unwrap());
    fixtures::observed(command, None, "2026-01-01T12:00:00Z")
}

fn observed() -> Observed {
    observed_in("Owner", &json!({}))
}

fn owner() -> OwnerReference {
    OwnerReference {
        api_version: "apps.example/v1".into(),
        kind: "Shop".into(),
        name: "a".into(),
        uid: "target".into(),
        ..OwnerReference::default()
    }
}

fn report() -> Action {
    Action::Report(Box::new(Condition {
        type_: BOUND.into(),
        status: "False".into(),
        reason: "TargetNotFound".into(),
        message: "there is no Shop a".into(),
        observed_generation: Some(1),
        last_transition_time: Time("2026-01-01T12:00:00Z".parse().unwrap()),
    }))
}

/// The time until another look-up of a target.
const LOOK_IN: Duration = Duration::from_secs(60);

fn verdict(reason: &'static str) -> Verdict {
    Verdict { is_bound: false, reason, message: "there is no Shop a".into(), may_pass: true }
}

fn tell(reason: &'static str) -> Action {
    Action::Tell { verdict: verdict(reason), look_in: Some(LOOK_IN) }
}

/// A test of the patch does not hold.
fn failed_test() -> Answer {
    Json(
        422,
        json!({"kind": "Status", "status": "Failure", "code": 422, "message": FAILED_TEST, "metadata": {}}),
    )
}

/// Takes a step for a command against a server that gives these answers.
async fn take_for(observed: Observed, action: Action, answers: &[Answer]) -> Taken {
    let (client, log) = answering(in_turn(answers));
    let executor = Executor::new(Writer::over(client.clone(), MANAGER), Events::over(client, MANAGER));
    let result = executor.act(&observed, action).await;
    let sent = log.take_after(executor).await;
    Taken { sent, result, memory: (), observed }
}

async fn take(action: Action, answers: &[Answer]) -> Taken {
    take_for(observed(), action, answers).await
}

/// The additions to a command that bind it, after the tests of the patch.
async fn additions(observed: Observed, owner: OwnerReference) -> Vec<Value> {
    let Taken { sent, .. } = take_for(observed, Action::Bind(owner), &[Done]).await;
    sent[0].body.as_array().unwrap().iter().filter(|operation| operation["op"] != "test").cloned().collect()
}

/// The tests of the patch that binds a command.
async fn tests(observed: Observed) -> Vec<Value> {
    let Taken { sent, .. } = take_for(observed, Action::Bind(owner()), &[Done]).await;
    sent[0].body.as_array().unwrap().iter().filter(|operation| operation["op"] == "test").cloned().collect()
}

fn added(path: &str, value: &Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

#[tokio::test(start_paused = true)]
async fn a_command_is_bound_in_one_write_that_holds_only_for_it_with_the_spec_and_the_owners_that_were_seen()
{
    let observed = observed_in("Owner", &json!({"generation": 3}));
    let Taken { sent, result, .. } = take_for(observed, Action::Bind(owner()), &[Done]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    let [Sent { verb, uri, body }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(verb, "AMEND");
    let (place, query) = uri.split_once('?').unwrap();
    assert!(
        place == COMMAND && query.contains(&format!("fieldManager={MANAGER}&fieldValidation=Strict")),
        "{uri}"
    );
    let owner = json!({"apiVersion": "apps.example/v1", "kind": "Shop", "name": "a", "uid": "target"});
    assert_eq!(
        *body,
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "command"},
            {"op": "test", "path": "/metadata/generation", "value": 3},
            {"op": "test", "path": "/metadata/ownerReferences", "value": null},
            {"op": "add", "path": "/metadata/ownerReferences", "value": [owner]},
            {"op": "test", "path": "/metadata/annotations", "value": null},
            {"op": "add", "path": "/metadata/annotations", "value": {keys::BOUND_TO: "target"}},
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn only_what_is_written_and_judged_is_tested() {
    let tested = |field: &str, value: Value| json!({"op": "test", "path": format!("/metadata/{field}"), "value": value});
    let state = async |description: Value| {
        let metadata = json!({"generation": 3, "labels": {"target": "a"}});
        tests(observed_as(&description, &metadata)).await[1]["path"].clone()
    };
    assert_eq!(state(json!({})).await, "/metadata/generation");
    for reads_more in [
        json!({"target": {"name": "object.metadata.labels['target']"}}),
        json!({"after": "!has(object.status)"}),
        json!({"refuse": [{"when": "object.metadata.?labels[?'x'].hasValue()", "message": "no"}]}),
        json!({"refuseFinalizers": ["ops.example/data"]}),
        json!({"selector": "ops.example/bind=yes"}),
    ] {
        assert_eq!(state(reads_more.clone()).await, "/metadata/resourceVersion", "{reads_more}");
    }
    let (uid, version) = (tested("uid", json!("command")), tested("resourceVersion", json!("7")));
    assert_eq!(
        tests(observed_in("Owner", &json!({}))).await,
        [
            uid.clone(),
            version.clone(),
            tested("ownerReferences", Value::Null),
            tested("annotations", Value::Null)
        ],
        "a kind without a generation"
    );
    let other = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "node", "controller": false});
    let metadata = json!({"ownerReferences": [other], "annotations": {"note": "mine"}});
    let record = tested("annotations/catena.dev~1bound-to", Value::Null);
    assert_eq!(
        tests(observed_in("Owner", &metadata)).await,
        [uid.clone(), version.clone(), tested("ownerReferences", json!([other])), record]
    );
    assert_eq!(tests(observed_in("Label", &metadata)).await, [uid, version, tested("labels", Value::Null)]);
}

#[tokio::test(start_paused = true)]
async fn the_owners_and_annotations_of_others_stay() {
    let other = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "node"});
    let metadata = json!({"ownerReferences": [other], "annotations": {"note": "mine"}});
    assert_eq!(
        additions(observed_in("Owner", &metadata), owner()).await,
        [
            added("/metadata/ownerReferences/-", &json!(owner())),
            added("/metadata/annotations/catena.dev~1bound-to", &json!("target")),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_is_written_as_it_was_decided() {
    let owner = OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..owner() };
    let additions = additions(observed(), owner).await;
    let written = &additions[0]["value"][0];
    assert_eq!((&written["controller"], &written["blockOwnerDeletion"]), (&json!(true), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn only_the_version_of_the_reference_to_the_target_is_refreshed() {
    let reference =
        |uid: &str| json!({"apiVersion": "apps.example/v0", "kind": "Shop", "name": "a", "uid": uid});
    let owners = json!([reference("another"), reference("target")]);
    let bound = json!({"ownerReferences": owners, "annotations": {keys::BOUND_TO: "target"}});
    let Taken { sent, result, .. } =
        take_for(observed_in("Owner", &bound), Action::Refresh(owner()), &[Done]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    let [Sent { verb, body, .. }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(verb, "AMEND");
    let path = "/metadata/ownerReferences/1/apiVersion";
    assert_eq!(
        *body,
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "command"},
            {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "replace", "path": path, "value": "apps.example/v1"},
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn in_mode_label_a_command_gets_a_label_and_no_owner() {
    assert_eq!(
        additions(observed_in("Label", &json!({})), owner()).await,
        [added("/metadata/labels", &json!({keys::TARGET_UID: "target"}))]
    );
    let labelled = observed_in("Label", &json!({"labels": {"app": "shop"}}));
    assert_eq!(
        additions(labelled, owner()).await,
        [added("/metadata/labels/catena.dev~1target-uid", &json!("target"))]
    );
}

#[tokio::test(start_paused = true)]
async fn a_command_that_was_not_bound_for_certain_is_tried_again() {
    for (answer, reason, is_stalled, tries) in [
        (refused(403), "Forbidden", false, 1),
        (refused(404), "NotFound", false, 1),
        (refused(409), "Conflict", false, 1),
        (failed_test(), "Conflict", false, 1),
        (refused(422), "Invalid", true, 1),
        (refused(429), "ServerBusy", false, 5),
        (refused(500), "WriteFailed", false, 1),
        // The next pass sends it again, if it is still needed.
        (Lost, "WriteFailed", false, 1),
    ] {
        let Taken { sent, result, .. } = take(Action::Bind(owner()), std::slice::from_ref(&answer)).await;
        let failure = Failure::from(result.unwrap_err());
        let told = (failure.reason, failure.is_stalled, sent.len());
        assert_eq!(told, (reason, is_stalled, tries), "{answer:?}");
        let is_stale = matches!(reason, "NotFound" | "Conflict");
        assert_eq!(failure.is_expected, is_stale, "{answer:?}");
    }
    let Taken { sent, result, .. } = take(Action::Bind(owner()), &[refused(429), Done]).await;
    assert_eq!((sent.len(), result.unwrap()), (2, Requeue::Written));
}

#[tokio::test(start_paused = true)]
async fn a_condition_is_applied_alone_and_to_the_very_command() {
    let Taken { sent, result, .. } = take(report(), &[Done]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    let [Sent { verb, uri, body }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(verb, "APPLY");
    let (place, query) = uri.split_once('?').unwrap();
    assert_eq!(place, format!("{COMMAND}/status"));
    assert!(query.contains(&format!("fieldManager={MANAGER}&fieldValidation=Strict")), "{uri}");
    let condition = json!({
        "type": BOUND, "status": "False", "reason": "TargetNotFound", "message": "there is no Shop a",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T12:00:00Z",
    });
    assert_eq!(
        *body,
        json!({
            "apiVersion": "ops.example/v1", "kind": "Restart",
            "metadata": {"name": "c", "uid": "command"},
            "status": {"conditions": [condition]},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_was_not_written_for_certain_is_written_again() {
    for (answer, reason, is_stalled, tries) in [
        (refused(403), "StatusRefused", true, 1),
        (refused(404), "NotFound", false, 1),
        (refused(409), "Conflict", false, 1),
        (refused(422), "StatusRefused", true, 1),
        (refused(429), "ServerBusy", false, 5),
        (refused(500), "WriteFailed", false, 1),
        (Lost, "WriteFailed", false, 1),
    ] {
        let Taken { sent, result, .. } = take(report(), std::slice::from_ref(&answer)).await;
        let failure = Failure::from(result.unwrap_err());
        let told = (failure.reason, failure.is_stalled, sent.len());
        assert_eq!(told, (reason, is_stalled, tries), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn people_are_told_by_an_event_on_the_command() {
    for (mode, reason, type_) in [
        ("Owner", "TargetNotFound", "Warning"),
        // Observing only is no reason for a warning.
        ("Observe", "WouldBind", "Normal"),
        ("Observe", "TargetNotFound", "Warning"),
    ] {
        let Taken { sent, result, .. } = take_for(observed_in(mode, &json!({})), tell(reason), &[Done]).await;
        assert_eq!(result.unwrap(), Requeue::After(LOOK_IN));
        let [Sent { verb, uri, body }] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((verb.as_str(), uri.trim_end_matches('?')), ("POST", EVENTS));
        assert_eq!(
            (&body["type"], &body["reason"], &body["note"]),
            (&json!(type_), &json!(reason), &json!("there is no Shop a"))
        );
        assert_eq!(
            (&body["regarding"]["kind"], &body["regarding"]["name"], &body["regarding"]["uid"]),
            (&json!("Restart"), &json!("c"), &json!("command"))
        );
        assert_eq!(body["reportingController"], MANAGER);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_refused_or_lost_fails_no_step() {
    for answer in [refused(403), refused(404), refused(409), refused(422), refused(429), refused(500), Lost] {
        let (client, log) = answering(in_turn(std::slice::from_ref(&answer)));
        let executor = Executor::new(Writer::over(client.clone(), MANAGER), Events::over(client, MANAGER));
        for _ in 0..2 {
            let result = executor.act(&observed(), tell("TargetNotFound")).await;
            assert_eq!(result.unwrap(), Requeue::After(LOOK_IN), "{answer:?}");
        }
        assert_eq!(log.take_after(executor).await.len(), 1, "it counts as told: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_counts_as_told_while_too_many_events_are_queued() {
    let (executor, log, events) = executor();
    while events.has_capacity() {
        events.publish(&ObjectReference::default(), Events::normal("Other", ""));
    }
    drop(events);
    let told = async || {
        let Action::Tell { verdict, .. } = tell("TargetNotFound") else { panic!() };
        executor.act(&observed(), Action::Tell { verdict, look_in: None }).await.unwrap()
    };
    assert_eq!(told().await, Requeue::After(Duration::from_secs(60)));
    sleep(Duration::from_secs(60)).await;
    let Requeue::After(rest) = told().await else { panic!() };
    assert!(rest > Duration::from_secs(60), "{rest:?}");
    assert_eq!(log.take_after(executor).await.last().unwrap().body["reason"], "TargetNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_reason_is_told_again_before_its_event_expires_and_not_sooner_and_another_one_at_once() {
    let (executor, log, _) = executor();
    let mut observed = observed();
    let told = async |observed: &Observed, reason: &'static str, message: &str| {
        let verdict = Verdict { message: message.into(), ..verdict(reason) };
        match executor.act(observed, Action::Tell { verdict, look_in: None }).await {
            Ok(Requeue::After(rest)) => rest,
            other => panic!("{other:?}"),
        }
    };
    let rest = told(&observed, "TargetNotFound", "there is no Shop a").await;
    assert!((30..50).contains(&(rest.as_secs() / 60)), "{rest:?}");
    sleep(rest / 2).await;
    assert!(told(&observed, "TargetNotFound", "there is no Shop b").await < rest, "it is known");
    assert_eq!(told(&observed, "TargetReplaced", "it is for another").await, rest, "it is told at once");
    sleep(rest).await;
    assert_eq!(told(&observed, "TargetReplaced", "it is for another").await, rest, "it is told again");
    Arc::get_mut(&mut observed.command).unwrap().metadata.generation = Some(2);
    assert_eq!(told(&observed, "TargetReplaced", "it is for a third").await, rest, "its spec changed");
    assert_eq!(log.take_after(executor).await.len(), 4);
}

/// An executor of its own, the log of its requests, and its Events.
fn executor() -> (Executor, Log, Events) {
    let (client, log) = answering(|_| Done);
    let events = Events::over(client.clone(), MANAGER);
    (Executor::new(Writer::over(client, MANAGER), events.clone()), log, events)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_a_command_waits_or_nothing_is_left_to_do() {
    let time = Duration::from_secs(9);
    for (action, next) in [(Action::Wait(time), Requeue::After(time)), (Action::Settle, Requeue::OnChange)] {
        let Taken { sent, result, .. } = take(action, &[Done]).await;
        assert_eq!((sent.len(), result.unwrap()), (0, next));
    }
}
