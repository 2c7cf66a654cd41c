//! The effects of each answer to the creation of a backup, and of a backup that cannot be created.

use super::*;

const JOBS: &str =
    "/apis/batch/v1/namespaces/backups/jobs?&fieldManager=backup-controller&fieldValidation=Strict";

#[tokio::test(start_paused = true)]
async fn a_backup_is_created_as_it_was_rendered_and_one_that_is_there_already_is_as_good() {
    for answer in [Answer::Done, Answer::Refusal(409, "AlreadyExists")] {
        let acted = act(Action::Create(backup()), answer).await;
        assert_eq!(outcome(&acted), Ok(Requeue::After(Duration::from_secs(1))));
        assert_eq!(acted.sent, [Sent { verb: "POST".into(), uri: JOBS.into(), body: backup() }]);
        assert_eq!(acted.memory.refusals("u", &kind()), 0, "the row of refusals has ended");
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_the_server_refuses_for_a_reason_of_its_own_counts_as_a_try() {
    let terminating = json!({
        "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "it is terminating",
        "details": {"causes": [{"reason": "NamespaceTerminating"}]},
    });
    // A 404 that does not name the namespace may be the answer of a webhook.
    let mut answers = refusals();
    answers.push((Answer::Json(403, terminating), "NamespaceTerminating"));
    for (answer, reason) in answers {
        // A failed test of a patch is no answer to a create.
        let is_failed_test = matches!(&answer, Answer::Json(422, _));
        let reason = if is_failed_test { "Invalid" } else { reason };
        let acted = act(Action::Create(backup()), answer.clone()).await;
        assert_eq!(outcome(&acted), Err(reason), "{answer:?}");
        let is_try = ["Forbidden", "Invalid", "NamespaceTerminating"].contains(&reason);
        assert_eq!(acted.memory.refusals("u", &kind()), 1 + u32::from(is_try), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_and_a_lost_answer_is_not_repeated_blindly() {
    let busy = Answer::Refusal(429, "TooManyRequests");
    let acted = act_on(&observed(), Action::Create(backup()), &[busy.clone(), busy, Answer::Done]).await;
    assert_eq!((acted.sent.len(), acted.result.is_ok()), (3, true));
    let acted = act(Action::Create(backup()), Answer::Lost).await;
    assert_eq!(
        (acted.sent.len(), acted.result.is_err()),
        (1, true),
        "the next pass finds the backup, or none"
    );
}

#[tokio::test(start_paused = true)]
async fn a_recorded_backup_is_about_to_be_created_until_the_server_may_have_done_so() {
    let recorded = act(Action::Begin(status(State::BackingUp)), Answer::Done).await;
    assert_eq!((outcome(&recorded), recorded.sent[0].verb.as_str()), (Ok(Requeue::Written), "MERGE"));
    assert!(recorded.memory.is_about_to_create("u"));
    for (answer, is_open) in
        [(Answer::Done, false), (Answer::Lost, false), (Answer::Refusal(403, "Forbidden"), true)]
    {
        let said = answer.clone();
        let (client, _) = answering(None, move |_| said.clone());
        let (writer, events) = (Writer::over(client.clone(), MANAGER), Events::over(client, MANAGER));
        let executor = Executor::new(writer, events, recorded.memory.clone(), HeldMetrics::default());
        recorded.memory.begins("u");
        executor.act(&observed(), Action::Create(backup())).await.ok();
        assert_eq!(recorded.memory.is_about_to_create("u"), is_open, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_a_try_and_a_kind_that_is_not_served_is_none() {
    let namespace = json!({"kind": "namespaces", "name": "backups"});
    let namespace = json!({"kind": "Status", "reason": "NotFound", "code": 404, "details": namespace});
    for (missing, reason, refusals) in [
        (Answer::Json(404, namespace), "NamespaceMissing", 2),
        (Answer::Json(404, json!("404 page not found")), "BackupKindNotServed", 1),
    ] {
        let acted = act(Action::Create(backup()), missing).await;
        assert_eq!((outcome(&acted), acted.sent.len()), (Err(reason), 1));
        assert_eq!(acted.memory.refusals("u", &kind()), refusals, "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_rendered_is_reported_and_is_no_try() {
    let problem = Failure::stalled(reason::BACKUP_WITHOUT_NAMESPACE, "");
    let acted = act(Action::Refuse(problem), Answer::Done).await;
    assert_eq!((outcome(&acted), acted.memory.refusals("u", &kind())), (Err("BackupWithoutNamespace"), 1));
    assert!(acted.sent.is_empty());
}
