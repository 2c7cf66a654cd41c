//! Each step: its requests, and the effects of each answer.

use std::{slice, sync::Arc};

use command_runner::{
    command::{Command, CommandRow},
    decide::decide,
};
use operator_kit::{
    run::Triggers, testing::Answer, testing::Answer::Done, testing::Answer::Lost, testing::Answer::Object,
    testing::Log, testing::Sent, testing::answering, testing::in_turn, testing::refused,
};
use operator_watch::Failure;

use super::*;
use crate::fixtures::{command, kind, observed, shop};

const MANAGER: &str = "command-runner";

fn executor(answers: &[Answer]) -> (Executor, Log) {
    let (client, log) = answering(in_turn(answers));
    let memory = Memory::new(Triggers::default(), || None);
    (Executor::new(Writer::over(client.clone(), MANAGER), Events::over(client, MANAGER), memory), log)
}

fn restart() -> Arc<Command> {
    command(&kind("restarts", &json!({})), "one", 10, &json!({}))
}

async fn run(answer: Answer) -> (Result<Requeue, ApiError>, Vec<Sent>) {
    let (executor, log) = executor(&[answer]);
    let (one, target) = (restart(), shop(&[], &json!({})));
    let observed = observed(&one, &[&one], target);
    let result = executor.act(&observed, decide(&observed)).await;
    (result, log.take())
}

#[tokio::test(start_paused = true)]
async fn a_command_is_carried_out_by_one_patch_of_its_target() {
    let (result, sent) = run(Done).await;
    assert_eq!(result.unwrap(), Requeue::Now);
    let [Sent { verb, uri, body }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(verb, "MERGE");
    assert!(uri.starts_with("/apis/apps.example/v1/namespaces/here/shops/a?"), "{uri}");
    assert_eq!(
        (&body["metadata"]["uid"], &body["metadata"]["resourceVersion"]),
        (&json!("shop"), &json!("9"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_target_that_changed_meanwhile_is_looked_at_again_at_once_and_a_lost_answer_proves_nothing() {
    assert_eq!(run(refused(409)).await.0.unwrap(), Requeue::Untried(CONFLICT_DELAY));
    assert_eq!(Failure::from(run(refused(403)).await.0.unwrap_err()).reason, "Forbidden");
    run(Lost).await.0.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_the_api_server_refuses_is_remembered_and_no_other_failure() {
    for (answer, is_refused) in [
        (refused(403), true),
        (refused(422), true),
        (refused(409), false),
        (refused(500), false),
        (Done, false),
    ] {
        let (executor, _log) = executor(&[answer]);
        let (one, target) = (restart(), shop(&[], &json!({})));
        executor.memory.came(&one.kind_id, "one", one.row.target_id());
        let seen = observed(&one, &[&one], target);
        executor.act(&seen, decide(&seen)).await.ok();
        assert_eq!(executor.memory.refused(&[one]).contains("one"), is_refused);
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_counts_as_refused_until_one_succeeds() {
    let (executor, _log) = executor(&[refused(403), refused(409), refused(500), Done]);
    let (one, target) = (restart(), shop(&[], &json!({})));
    executor.memory.came(&one.kind_id, "one", one.row.target_id());
    let seen = observed(&one, &[&one], target);
    for is_refused in [true, true, true, false] {
        executor.act(&seen, decide(&seen)).await.ok();
        assert_eq!(executor.memory.refused(slice::from_ref(&one)).contains("one"), is_refused);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_reported_in_the_status_where_the_definition_has_one_for_it() {
    let (one, answer) = (restart(), Object(json!({"metadata": {"resourceVersion": "8"}})));
    let (executor, log) = executor(&[answer]);
    let seen = observed(&one, &[&one], shop(&[&one], &json!({})));
    assert_eq!(executor.act(&seen, decide(&seen)).await.unwrap(), Requeue::Written);
    let sent = log.take();
    assert!(sent[0].uri.starts_with("/apis/ops.example/v1/namespaces/here/restarts/one/status?"), "{sent:?}");
    assert_eq!(sent[0].body["status"]["progress"], "1/2");
    assert_eq!(sent[0].body["metadata"]["resourceVersion"], "7", "a late write overwrites no end");
}

#[tokio::test(start_paused = true)]
async fn after_a_report_that_fails_the_target_is_looked_at_again_at_once() {
    let (one, answer) = (restart(), Object(json!({"metadata": {"resourceVersion": "8"}})));
    let (executor, _log) = executor(&[refused(409), answer]);
    executor.memory.came(&one.kind_id, "one", one.row.target_id());
    let seen = observed(&one, &[&one], shop(&[&one], &json!({})));
    for looks_again in [true, false] {
        executor.memory.look_in("one", Duration::from_secs(60));
        executor.act(&seen, decide(&seen)).await.ok();
        assert_eq!(executor.memory.look_in("one", Duration::from_secs(60)).is_zero(), looks_again);
    }
}

#[tokio::test(start_paused = true)]
async fn elsewhere_it_is_reported_by_an_annotation_that_no_copy_has_and_by_an_event() {
    let one = restart();
    let (executor, log) = executor(&[Done]);
    let seen = Observed { takes_status: Some(false), ..observed(&one, &[&one], shop(&[&one], &json!({}))) };
    assert_eq!(executor.act(&seen, decide(&seen)).await.unwrap(), Requeue::Written);
    let sent = log.take_after(executor).await;
    let [patch, event] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(patch.body["metadata"]["resourceVersion"], "7");
    let annotations = patch.body["metadata"]["annotations"].clone();
    assert_eq!((&event.body["reason"], &event.body["type"]), (&json!("Running"), &json!("Normal")));

    let with = |uid: &str| {
        let more = json!({"metadata": {"uid": uid, "annotations": annotations}});
        command(&kind("restarts", &json!({})), "one", 10, &more)
    };
    let Action::Report(status) = decide(&seen) else { panic!("nothing is reported") };
    let CommandRow { annotated: read, .. } = &with("one").row;
    let known = |status: &CommandStatus| (status.start_time.is_some(), status.progress.clone());
    assert_eq!(known(read), known(&status));
    assert!(with("one").row.has_started() && !with("copy").row.has_started());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_a_command_waits_or_nothing_is_left_to_do() {
    let (one, time) = (restart(), Duration::from_secs(9));
    let (executor, log) = executor(&[Done]);
    let seen = observed(&one, &[&one], shop(&[], &json!({})));
    for (action, next) in [(Action::Wait(time), Requeue::After(time)), (Action::Settle, Requeue::OnChange)] {
        assert_eq!(executor.act(&seen, action).await.unwrap(), next);
    }
    assert_eq!(log.take(), []);
}
