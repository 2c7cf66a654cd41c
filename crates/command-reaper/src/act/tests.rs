//! Each step: its requests, and the effects of each answer.

use std::{sync::Arc, time::Duration};

use command_reaper::{command::CommandRow, decide::notice};
use k8s_openapi::api::core::v1::ObjectReference;
use operator_kit::{
    run::Backoffs,
    testing::{
        self,
        Answer::{self, Done, Json, Lost},
        Sent, answering, in_turn, refused,
    },
};
use operator_templates::Expression;
use operator_watch::DynamicRow;
use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::fixtures::command;

const MANAGER: &str = "command-reaper";
const TASK: &str = "/apis/example.com/v1/namespaces/shop/tasks/dump";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/shop/events";

type Taken = testing::Taken<Observed, Memory, Failure>;

fn observed() -> Observed {
    Observed {
        command: Arc::new(command()),
        backoffs: Backoffs::default(),
        now: "2026-01-01T12:00:00Z".parse().unwrap(),
        is_deleted: false,
        came_back: false,
    }
}

/// Takes a step against a server that gives these answers.
async fn take(action: Action, answers: &[Answer]) -> Taken {
    let (client, log) = answering(in_turn(answers));
    let memory = Memory::default();
    let executor =
        Executor::new(Writer::over(client.clone(), MANAGER), Events::over(client, MANAGER), memory.clone());
    let observed = observed();
    let result = executor.act(&observed, action).await;
    Taken { sent: log.take_after(executor).await, result, memory, observed }
}

fn created_again() -> DynamicRow<CommandRow> {
    created_again_at("2026-01-01T12:00:01Z")
}

fn created_again_at(time: &str) -> DynamicRow<CommandRow> {
    let mut command = DynamicRow::clone(&observed().command);
    command.metadata.uid = Some("another".into());
    command.metadata.creation_timestamp = serde_json::from_value(json!(time)).unwrap();
    command
}

#[tokio::test(start_paused = true)]
async fn a_command_is_deleted_only_exactly_as_it_was_seen_and_what_it_owns_goes_with_it() {
    let Taken { sent, result, memory, observed } = take(Action::Delete, &[Done]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    let [Sent { verb, uri, body }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((verb.as_str(), uri.trim_end_matches('?')), ("DELETE", TASK));
    assert_eq!(
        *body,
        json!({"preconditions": {"uid": "task", "resourceVersion": "7"}, "propagationPolicy": "Background"})
    );
    assert!(memory.is_deleted(&observed.command));
    assert!(memory.came_back(&created_again()));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_without_an_answer_is_known_again_if_it_may_have_worked() {
    for (answer, expected) in [
        (Lost, true),
        (refused(504), true),
        (refused(403), false),
        (refused(409), false),
        (refused(422), false),
    ] {
        let Taken { result, memory, observed, .. } =
            take(Action::Delete, std::slice::from_ref(&answer)).await;
        assert!(result.is_err() && !memory.is_deleted(&observed.command), "{answer:?}");
        assert_eq!(memory.came_back(&created_again()), expected, "{answer:?}");
    }
}

/// The first may have been the reason of the refusal.
#[tokio::test(start_paused = true)]
async fn a_refused_repetition_does_not_disprove_a_deletion_that_may_have_worked() {
    for first in [Lost, refused(500), refused(503)] {
        for second in [refused(403), refused(409), refused(422)] {
            let answers = [first.clone(), second];
            let (client, _) = answering(in_turn(&answers));
            let memory = Memory::default();
            let events = Events::over(client.clone(), MANAGER);
            let executor = Executor::new(Writer::over(client, MANAGER), events, memory.clone());
            for _ in &answers {
                executor.act(&observed(), Action::Delete).await.unwrap_err();
            }
            assert!(memory.came_back(&created_again()), "{answers:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_a_finalizer_held_for_more_than_an_hour_is_known_again() {
    for answer in [Done, Lost] {
        let Taken { memory, .. } = take(Action::Delete, std::slice::from_ref(&answer)).await;
        let again = created_again_at("2026-01-01T14:00:30Z");
        assert!(!memory.came_back(&again), "{answer:?}");
        memory.forget("task", "2026-01-01T14:00:00Z".parse().unwrap());
        assert!(memory.came_back(&again), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_is_gone_already_counts_as_deleted() {
    let Taken { result, memory, observed, .. } = take(Action::Delete, &[refused(404)]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    assert!(memory.is_deleted(&observed.command));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_was_not_deleted_for_certain_is_tried_again() {
    for (answer, reason, is_stalled, tries) in [
        (refused(403), "Forbidden", false, 1),
        // It changed meanwhile: the next pass sees its new state.
        (refused(409), "Conflict", false, 1),
        // Its kind is not served for a while, and it is still stored.
        (Json(404, json!("404 page not found")), "KindNotServed", false, 1),
        (refused(422), "Invalid", true, 1),
        (refused(429), "ServerBusy", false, 5),
        (refused(500), "WriteFailed", false, 1),
        (Lost, "WriteFailed", false, 1),
    ] {
        let Taken { sent, result, memory, observed } =
            take(Action::Delete, std::slice::from_ref(&answer)).await;
        let failure = result.unwrap_err();
        let told = (failure.reason, failure.is_stalled, sent.len());
        assert_eq!(told, (reason, is_stalled, tries), "{answer:?}");
        assert!(!memory.is_deleted(&observed.command), "{answer:?}");
    }
    let Taken { sent, result, .. } = take(Action::Delete, &[refused(429), Done]).await;
    assert_eq!((sent.len(), result.unwrap()), (2, Requeue::Written));
}

#[tokio::test(start_paused = true)]
async fn a_command_is_marked_as_kept_with_its_own_uid_and_only_itself() {
    let Taken { sent, result, .. } = take(Action::Keep, &[Done]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    let [Sent { verb, uri, body }] = &sent[..] else { panic!("{sent:?}") };
    let (path, query) = uri.split_once('?').unwrap();
    assert_eq!((verb.as_str(), path), ("MERGE", TASK));
    assert!(query.contains(&format!("fieldManager={MANAGER}")), "{query}");
    let metadata = json!({
        "name": "dump", "namespace": "shop", "uid": "task", "annotations": {"catena.dev/kept": "task"},
    });
    assert_eq!(*body, json!({ "metadata": metadata }));
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_was_not_written_is_an_error_and_nobody_is_told() {
    for (answer, reason) in [(refused(403), "Forbidden"), (refused(409), "Conflict"), (Lost, "WriteFailed")] {
        let Taken { sent, result, .. } = take(Action::Keep, std::slice::from_ref(&answer)).await;
        assert_eq!((result.unwrap_err().reason, sent.len()), (reason, 1), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn people_are_told_by_an_event_on_the_command_and_a_warning_is_repeated_before_it_expires() {
    for (tell, type_, minutes) in
        [(notice::kept("mark"), "Normal", 60..61), (notice::created_again(), "Warning", 30..50)]
    {
        let Action::Tell { reason, note, .. } = tell.clone() else { panic!("{tell:?}") };
        let (client, log) = answering(|_| Done);
        let (writer, events) = (Writer::over(client.clone(), MANAGER), Events::over(client, MANAGER));
        let executor = Executor::new(writer, events, Memory::default());
        for _ in 0..2 {
            let result = executor.act(&observed(), tell.clone()).await.unwrap();
            assert!(
                matches!(result, Requeue::After(time) if minutes.contains(&(time.as_secs() / 60))),
                "{result:?}"
            );
        }
        let sent = log.take_after(executor).await;
        let [Sent { verb, uri, body }] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((verb.as_str(), uri.trim_end_matches('?')), ("POST", EVENTS));
        assert_eq!(
            (&body["type"], &body["reason"], &body["note"]),
            (&json!(type_), &json!(reason), &json!(note))
        );
        assert_eq!(
            (&body["regarding"]["kind"], &body["regarding"]["name"], &body["regarding"]["uid"]),
            (&json!("Task"), &json!("dump"), &json!("task"))
        );
        assert_eq!(body["reportingController"], MANAGER);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_refused_or_lost_fails_no_step() {
    for answer in [refused(403), refused(404), refused(409), refused(422), refused(429), refused(500), Lost] {
        let Taken { sent, result, .. } = take(notice::created_again(), std::slice::from_ref(&answer)).await;
        assert_eq!(sent.len(), 1, "{answer:?}");
        assert!(
            matches!(result, Ok(Requeue::After(time)) if time.as_secs() >= 30 * 60),
            "{answer:?}: {result:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_counts_as_told_while_too_many_events_are_queued() {
    let (client, log) = answering(|_| Done);
    let events = Events::over(client.clone(), MANAGER);
    while events.has_capacity() {
        events.publish(&ObjectReference::default(), Events::normal("Other", ""));
    }
    let executor = Executor::new(Writer::over(client, MANAGER), events, Memory::default());
    let minute = Duration::from_secs(60);
    let result = executor.act(&observed(), notice::created_again()).await;
    assert_eq!(result.unwrap(), Requeue::After(minute));
    sleep(minute).await;
    executor.act(&observed(), notice::created_again()).await.unwrap();
    assert_eq!(log.take_after(executor).await.last().unwrap().body["reason"], "CreatedAgain");
}

#[tokio::test(start_paused = true)]
async fn a_command_that_cannot_be_read_is_reported_and_left_alone() {
    let unreadable = Expression::compile("finishedAt", "object.", &["object"]).unwrap_err();
    let Taken { sent, result, .. } = take(Action::Refuse(Box::new(unreadable)), &[Done]).await;
    let failure = result.unwrap_err();
    assert!(sent.is_empty(), "{sent:?}");
    assert_eq!((failure.reason, failure.is_stalled), ("ExpiryUnknown", true));
    assert!(failure.message.starts_with("it cannot be determined when this command expires: "), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_a_command_waits_or_nothing_is_left_to_do() {
    let time = Duration::from_secs(9);
    for (action, next) in [(Action::Wait(time), Requeue::After(time)), (Action::Settle, Requeue::OnChange)] {
        let Taken { sent, result, .. } = take(action, &[Done]).await;
        assert_eq!((sent.len(), result.unwrap()), (0, next));
    }
}
