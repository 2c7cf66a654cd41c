//! Each step: its requests, and the effects of each answer.

mod creates;
mod releases;

use std::sync::Arc;

use backup_controller::{
    Settings,
    backup::{Situation, Try, Verdict},
    decide::decide,
};
use catena_api::keys::BACKUP_FINALIZER;
use jiff::Timestamp;
use operator_kit::{run::Backoffs, testing::in_turn};
use operator_watch::Failure;

use super::*;
use crate::{
    fixtures::{self, MANAGER, TEMPLATE, created, failed, held, settings, target, with_policy},
    metrics::tests::page_of,
    mock_server::{Answer, Sent, answering},
};

const WEB: &str =
    "/api/v1/namespaces/shop/configmaps/web?&fieldManager=backup-controller&fieldValidation=Strict";

/// The answer of the API server to a JSON patch with a failed test.
const FAILED_TEST: &str = "the server rejected our request due to an error in our request";

/// The outcome of a step.
struct Acted {
    /// The requests, without Events.
    sent: Vec<Sent>,
    /// The reasons of the Events.
    told: Vec<String>,
    /// The objects that the Events are about, beside the held one.
    related: Vec<Value>,
    result: Result<Requeue, Failure>,
    memory: Memory,
    metrics: String,
}

/// Takes a step against a server that gives these answers, and then the last one forever. The server refused one backup
/// before.
async fn act_on(observed: &Observed, action: Action, answers: &[Answer]) -> Acted {
    let mut answer = in_turn(answers);
    let is_event = |sent: &Sent| sent.uri.contains("/events");
    let (client, log) = answering(None, move |sent| if is_event(sent) { Answer::Done } else { answer(sent) });
    let memory = Memory::default();
    memory.refused("u", observed.kind.as_ref().unwrap());
    let metrics = HeldMetrics::default();
    let executor = Executor::new(
        Writer::over(client.clone(), MANAGER),
        Events::over(client, MANAGER),
        memory.clone(),
        metrics.clone(),
    );
    let result = executor.act(observed, action).await;
    // Events are published in the background; time advances only while all tasks wait.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (events, sent): (Vec<_>, _) = log.take().into_iter().partition(is_event);
    let told = events.iter().map(|event| event.body["reason"].as_str().unwrap().to_owned()).collect();
    let related = events.iter().map(|event| event.body["related"].clone()).collect();
    Acted { sent, told, related, result, memory, metrics: page_of(&metrics) }
}

async fn act(action: Action, answer: Answer) -> Acted {
    act_on(&observed(), action, &[answer]).await
}

/// The effect of a step: its continuation, or the reason of its failure.
fn outcome(acted: &Acted) -> Result<Requeue, &'static str> {
    acted.result.as_ref().copied().map_err(|failure| failure.reason)
}

fn kind() -> Arc<ProtectedKind> {
    settings(TEMPLATE, "backups").kinds["maps"].clone()
}

fn observed() -> Observed {
    let settings = settings(TEMPLATE, "backups");
    held(&settings, &target("shop"), Situation::Absent { attempt: 1, backup: backup() })
}

fn living(finalizers: &[&str]) -> Observed {
    fixtures::living(&settings(TEMPLATE, "backups"), finalizers)
}

fn backup() -> Value {
    created(&settings(TEMPLATE, "backups"), &target("shop"), 1)
}

fn status(state: State) -> BackupStatus {
    let (backup, reason, message) = (Some("Job backups/web-1".into()), "Reason".into(), "as it says".into());
    BackupStatus { state, backup, reason, message, ..failed(1) }
}

fn tell(state: State) -> Action {
    Action::Hold { status: status(state), tell: true, again: Duration::from_secs(30) }
}

fn release(outcome: Outcome) -> Action {
    Action::Release { outcome, status: status(State::Released) }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_refused_keeps_nobody_and_is_remembered() {
    for refusal in [Answer::Refusal(403, "Forbidden"), Answer::Refusal(422, "Invalid")] {
        let told = act(tell(State::Failed), refusal.clone()).await;
        assert_eq!(outcome(&told), Ok(Requeue::After(Duration::from_secs(30))), "{refusal:?}");
        assert_eq!(told.memory.told("u").unwrap().0, status(State::Failed));
        assert_eq!(told.told, ["BackupFailed"]);
        told.memory.created("u");
        assert_eq!(told.memory.refusals("u", &kind()), 0);
        assert!(told.memory.told("u").is_some(), "its pause is lost");

        let settings = settings(TEMPLATE, "backups");
        let mut object = target("shop");
        object["metadata"]["annotations"] = json!({"a": "b"});
        let mut observed = held(&settings, &object, Situation::Absent { attempt: 1, backup: backup() });
        observed.held.as_mut().unwrap().status = Some(status(State::BackingUp));
        let released = act_on(&observed, release(Outcome::BackedUp), &[refusal, Answer::Done]).await;
        assert_eq!(outcome(&released), Ok(Requeue::Written));
        let last = &released.sent.last().unwrap().body;
        assert_eq!((released.sent.len(), last.to_string().contains("backup-status")), (2, false), "{last}");
    }
    let busy = act(tell(State::Failed), Answer::Refusal(503, "ServiceUnavailable")).await;
    assert!(busy.result.is_err() && busy.memory.told("u").is_none());
}

/// The failures among the answers, and the reported reason of each.
fn refusals() -> Vec<(Answer, &'static str)> {
    let failed_test = json!({"kind": "Status", "status": "Failure", "code": 422, "message": FAILED_TEST});
    vec![
        (Answer::Refusal(403, "Forbidden"), "Forbidden"),
        (Answer::Refusal(404, "NotFound"), "NotFound"),
        (Answer::Refusal(409, "Conflict"), "Conflict"),
        (Answer::Json(422, failed_test), "Conflict"),
        (Answer::Refusal(422, "Invalid"), "Invalid"),
        (Answer::Refusal(429, "TooManyRequests"), "ServerBusy"),
        (Answer::Refusal(500, "InternalError"), "WriteFailed"),
        (Answer::Lost, "WriteFailed"),
    ]
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_put_on_the_very_object_that_was_seen_and_lives() {
    let acted = act_on(&living(&["a.example/x"]), Action::Protect, &[Answer::Done]).await;
    assert_eq!(outcome(&acted), Ok(Requeue::Written));
    assert!(acted.memory.is_unmeasured("u"));
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/deletionTimestamp", "value": null},
        {"op": "test", "path": "/metadata/finalizers", "value": ["a.example/x"]},
        {"op": "add", "path": "/metadata/finalizers/-", "value": BACKUP_FINALIZER},
    ]);
    assert_eq!(acted.sent, [Sent { verb: "AMEND".into(), uri: WEB.into(), body: patch }]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_backed_up_is_told_while_it_lives() {
    let problem = Failure::stalled(reason::BACKUP_WITHOUT_NAMESPACE, "");
    let acted = act_on(&living(&[BACKUP_FINALIZER]), Action::Warn(problem), &[Answer::Done]).await;
    assert_eq!((outcome(&acted), acted.sent.len()), (Ok(Requeue::Now), 0));
    assert_eq!(acted.told, ["BackupWithoutNamespace"]);
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_taken_back_only_from_what_lives_and_is_as_it_was_seen() {
    let acted = act_on(&living(&[BACKUP_FINALIZER]), Action::TakeBack, &[Answer::Done]).await;
    assert_eq!(outcome(&acted), Ok(Requeue::Written));
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "test", "path": "/metadata/deletionTimestamp", "value": null},
        {"op": "test", "path": "/metadata/finalizers/0", "value": BACKUP_FINALIZER},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]);
    assert_eq!(acted.sent, [Sent { verb: "AMEND".into(), uri: WEB.into(), body: patch }]);
}

#[tokio::test(start_paused = true)]
async fn why_it_waits_is_said_on_the_very_object_and_once_in_an_event() {
    let acted = act(tell(State::Failed), Answer::Done).await;
    assert_eq!(outcome(&acted), Ok(Requeue::Written));
    let patch = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u",
            "annotations": {BACKUP_STATUS: status(State::Failed).text()},
        },
    });
    assert_eq!(acted.sent, [Sent { verb: "MERGE".into(), uri: WEB.into(), body: patch }]);
    assert_eq!(acted.told, ["BackupFailed"]);
    assert!(acted.metrics.contains(r#"held_objects{entry="maps",reason="Reason"} 1"#), "{}", acted.metrics);

    for (state, told) in [
        (State::BackingUp, &["BackupRunning"][..]),
        (State::Overdue, &["BackupOverdue"]),
        (State::Blocked, &[]),
    ] {
        assert_eq!(act(tell(state), Answer::Done).await.told, told, "{state:?}");
    }
    let given_up = BackupStatus { reason: reason::BACKUP_OVERDUE.into(), ..status(State::Failed) };
    let given_up = Action::Hold { status: given_up, tell: true, again: Duration::ZERO };
    assert_eq!(act(given_up, Answer::Done).await.told, ["BackupOverdue"]);
    let vanished = BackupStatus { reason: reason::BACKUP_VANISHED.into(), ..status(State::Failed) };
    let vanished = Action::Hold { status: vanished, tell: true, again: Duration::ZERO };
    assert_eq!(act(vanished, Answer::Done).await.told, ["BackupVanished"]);
    let mut said = observed();
    said.held.as_mut().unwrap().status = Some(status(State::Failed));
    let again = act_on(&said, tell(State::Failed), &[Answer::Done]).await;
    assert_eq!((again.sent.len(), again.told.len()), (1, 0), "only another state or try is news");
}

#[tokio::test(start_paused = true)]
async fn an_event_about_a_backup_names_it() {
    let mut observed = observed();
    let held = observed.held.as_mut().unwrap();
    held.status = Some(status(State::BackingUp));
    let found = json!({"metadata": {"namespace": "backups", "name": "web-1", "uid": "b"}});
    let last = Try::new(&observed.kind.as_ref().unwrap().backup, 1, &found, Timestamp::UNIX_EPOCH);
    held.situation = Some(Situation::There { last, verdict: Verdict::Failed });
    let backup = json!({
        "apiVersion": "batch/v1", "kind": "Job", "namespace": "backups", "name": "web-1", "uid": "b",
    });
    for action in [tell(State::Failed), release(Outcome::BackedUp), release(Outcome::GivenUp)] {
        let acted = act_on(&observed, action, &[Answer::Done]).await;
        assert_eq!(acted.related, std::slice::from_ref(&backup), "{:?}", acted.told);
    }
}

#[tokio::test(start_paused = true)]
async fn that_the_outcome_of_a_running_backup_cannot_be_told_is_news() {
    let mut observed = observed();
    observed.held.as_mut().unwrap().status = Some(status(State::BackingUp));
    let unclear = BackupStatus { reason: "BackupUnclear".into(), ..status(State::BackingUp) };
    let hold = Action::Hold { status: unclear, tell: true, again: Duration::from_secs(30) };
    assert_eq!(act_on(&observed, hold, &[Answer::Done]).await.told, ["BackupUnclear"]);
    assert_eq!(act_on(&observed, tell(State::BackingUp), &[Answer::Done]).await.told, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_namespace_is_written_without_one() {
    let settings = settings(TEMPLATE, "backups");
    let observed = held(&settings, &target(""), Situation::Absent { attempt: 1, backup: backup() });
    for action in [tell(State::Failed), release(Outcome::BackedUp)] {
        let acted = act_on(&observed, action, &[Answer::Done]).await;
        assert!(acted.sent[0].uri.starts_with("/api/v1/configmaps/web?"), "{}", acted.sent[0].uri);
        assert_eq!(acted.sent[0].body.pointer("/metadata/namespace"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_already_is_only_waited_for() {
    let again = Duration::from_secs(30);
    let hold = Action::Hold { status: status(State::Failed), tell: false, again };
    let acted = act(hold, Answer::Done).await;
    assert_eq!((outcome(&acted), acted.sent.len(), acted.told.len()), (Ok(Requeue::After(again)), 0, 0));
    assert!(acted.metrics.contains("held_objects{"), "{}", acted.metrics);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_does_not_take_is_reported_and_repeated_by_no_step() {
    for (answer, reason) in refusals() {
        let sent = if matches!(answer, Answer::Refusal(429, _)) { 5 } else { 1 };
        for (observed, action) in [
            (living(&[]), Action::Protect),
            (living(&[BACKUP_FINALIZER]), Action::TakeBack),
            (observed(), release(Outcome::BackedUp)),
        ] {
            let acted = act_on(&observed, action.clone(), std::slice::from_ref(&answer)).await;
            assert_eq!((outcome(&acted), acted.sent.len()), (Err(reason), sent), "{action:?} {answer:?}");
            assert!(!acted.metrics.contains("released_objects_total{"), "{}", acted.metrics);
        }
        if matches!(answer, Answer::Refusal(403 | 422, _) | Answer::Json(422, _)) {
            // Refused for good: `a_status_that_is_refused_keeps_nobody_and_is_remembered`.
            continue;
        }
        let acted = act(tell(State::Failed), answer.clone()).await;
        assert!(acted.result.is_err(), "{answer:?}");
        assert!(acted.told.is_empty(), "an Event tells what the object says: {answer:?}");
    }
}

/// The invariant: no answer releases an object. Only [`Action::Release`] removes the finalizer from an object that is
/// being deleted, and the memory of answers leads to it only if the server refused the backup and the settings allow
/// it.
#[tokio::test(start_paused = true)]
async fn no_answer_lets_an_object_go_without_a_proven_backup() {
    let releasing = json!({"onFailure": "Release", "tries": 2, "deadline": "1s"});
    let releasing = with_policy(TEMPLATE, "backups", &releasing);
    let holding = settings(TEMPLATE, "backups");
    let mut answers = refusals();
    answers.push((Answer::Done, ""));
    for (answer, _) in answers {
        for action in [
            Action::Protect,
            Action::Create(backup()),
            Action::Refuse(Failure::stalled(reason::BACKUP_WITHOUT_NAMESPACE, "")),
            tell(State::Failed),
            Action::Settle,
        ] {
            for (settings, releases) in [(&holding, false), (&releasing, true)] {
                let observed =
                    held(settings, &target("shop"), Situation::Absent { attempt: 1, backup: backup() });
                let acted = act_on(&observed, action.clone(), std::slice::from_ref(&answer)).await;
                let removes =
                    |sent: &Sent| sent.verb == "DELETE" || sent.body.to_string().contains("\"remove\"");
                assert!(!acted.sent.iter().any(removes), "{action:?} {answer:?}");
                let is_refused =
                    matches!((&action, outcome(&acted)), (Action::Create(_), Err("Forbidden" | "Invalid")));
                let expected = (releases && is_refused).then_some(Outcome::GivenUp);
                assert_eq!(is_let_go(settings, &acted), expected, "{action:?} {answer:?}");
            }
        }
    }
}

/// Whether the next pass releases an object that has been held for an hour without a backup.
fn is_let_go(settings: &Settings, acted: &Acted) -> Option<Outcome> {
    let mut observed = held(settings, &target("shop"), Situation::Absent { attempt: 1, backup: backup() });
    observed.held.as_mut().unwrap().refusals = acted.memory.refusals("u", &settings.kinds["maps"]);
    if let Err(failure) = &acted.result {
        observed.backoffs = Backoffs::of_everything(failure.clone());
    }
    match decide(&observed) {
        Action::Release { outcome, .. } => Some(outcome),
        _ => None,
    }
}
