//! The requests, the Event and the count of a release, and the effects of each answer to it.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_finalizer_of_the_very_object_is_removed_and_others_stay() {
    let mut observed = observed();
    let held = observed.held.as_mut().unwrap();
    held.finalizers = vec!["a.example/x".into(), BACKUP_FINALIZER.into()];
    held.is_annotated = true;
    let acted = act_on(&observed, release(Outcome::BackedUp), &[Answer::Done]).await;
    assert_eq!(outcome(&acted), Ok(Next::Written));
    let text = status(State::Released).text();
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/finalizers/1", "value": BACKUP_FINALIZER},
        {"op": "remove", "path": "/metadata/finalizers/1"},
        {"op": "add", "path": "/metadata/annotations/catena.dev~1backup-status", "value": text},
    ]);
    assert_eq!(acted.sent, [Sent { verb: "AMEND".into(), uri: WEB.into(), body: patch }]);
    let released = r#"released_objects_total{kind="maps",outcome="backed_up"} 1"#;
    assert!(acted.metrics.contains(released), "{}", acted.metrics);
    assert!(acted.told.is_empty(), "nothing was said of its waiting");
}

#[tokio::test(start_paused = true)]
async fn what_is_let_go_without_a_backup_leaves_an_audit_even_if_the_write_fails() {
    for (outcome, reason) in [(Outcome::GivenUp, "ReleasedWithoutBackup"), (Outcome::Forced, "ForceReleased")]
    {
        for answer in [Answer::Done, Answer::Lost, Answer::Refusal(500, ""), Answer::Refusal(502, "")] {
            let acted = act(release(outcome), answer.clone()).await;
            assert_eq!(acted.told, [reason], "{answer:?}");
            let is_answered = matches!(answer, Answer::Done);
            let is_open = acted.notes[0].contains("did not say whether");
            assert_eq!((is_open, acted.notes[0].starts_with("perhaps")), (!is_answered, !is_answered));
            let label = if outcome == Outcome::Forced { "forced" } else { "given_up" };
            let counted = format!("outcome=\"{label}\"}} 1\n");
            assert!(acted.metrics_once_gone.contains(&counted), "{answer:?}: {}", acted.metrics_once_gone);
        }
        let unadmitted = json!({
            "kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError",
            "message": "Internal error occurred: failed calling webhook \"a.example.com\": connection refused",
        });
        for answer in
            [Answer::Refusal(403, ""), Answer::Refusal(422, ""), Answer::Json(500, unadmitted.clone())]
        {
            let refused = act(release(outcome), answer.clone()).await;
            assert!(refused.told.is_empty(), "it stays, and {reason} is told ({answer:?})");
            assert!(!refused.metrics_once_gone.contains("released_objects_total{"), "{answer:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_release_of_a_kind_is_an_increase() {
    let (client, _) = answering(None, |_| Answer::Done);
    let (writer, metrics) = (Writer::over(client.clone(), MANAGER), HeldMetrics::new());
    metrics.expect(&settings(TEMPLATE, "backups"));
    let series = |page: &str| page.lines().filter(|line| line.starts_with("released_objects_total{")).count();
    let before = page_of(&metrics);
    assert!(before.contains("outcome=\"forced\"} 0\n"), "{before}");
    let executor = Executor::new(writer, Events::over(client, MANAGER), Memory::default(), metrics.clone());
    executor.act(&observed(), release(Outcome::Forced)).await.unwrap();
    let after = page_of(&metrics);
    assert!(after.contains("outcome=\"forced\"} 1\n"), "{after}");
    assert_eq!(series(&before), series(&after), "it is another series");
}

#[tokio::test(start_paused = true)]
async fn a_proven_backup_stays_proven_when_the_answer_to_the_release_is_lost() {
    let mut observed = observed();
    observed.held.as_mut().unwrap().status = Some(status(State::BackingUp));
    let acted = act_on(&observed, release(Outcome::BackedUp), &[Answer::Lost]).await;
    assert_eq!(acted.told, ["BackedUp"]);
    assert!(
        !acted.notes[0].contains("perhaps") && acted.notes[0].contains("whether the object was released")
    );
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_counts_when_the_object_is_seen_without_the_finalizer() {
    let (client, _) = answering(None, |_| Answer::Lost);
    let (writer, metrics) = (Writer::over(client.clone(), MANAGER), HeldMetrics::new());
    let executor = Executor::new(writer, Events::over(client, MANAGER), Memory::default(), metrics.clone());
    executor.act(&observed(), release(Outcome::Forced)).await.unwrap_err();
    assert!(page_of(&metrics).contains("held_objects{"));
    let mut kept = observed();
    kept.held = None;
    Arc::make_mut(&mut kept.target).row.finalizers = vec!["a.example/x".into()];
    executor.act(&kept, Action::Settle).await.unwrap();
    let page = page_of(&metrics);
    assert!(page.contains("outcome=\"forced\"} 1\n") && !page.contains("held_objects{"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_cut_off_is_told_and_counted() {
    let (client, log) =
        answering(None, |sent| if sent.uri.contains("/events") { Answer::Done } else { Answer::Silence });
    let writer = Writer::over(client.clone(), MANAGER);
    let (events, metrics) = (Events::over(client, MANAGER), HeldMetrics::new());
    let executor = Executor::new(writer, events, Memory::default(), metrics.clone());
    let observed = observed();
    let pass = executor.act(&observed, release(Outcome::GivenUp));
    assert!(tokio::time::timeout(Duration::from_secs(1), pass).await.is_err());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(log.take().iter().any(|sent| sent.body["reason"] == "ReleasedWithoutBackup"));
    executor.forget("u");
    let page = page_of(&metrics);
    assert!(page.contains("outcome=\"given_up\"} 1\n"), "it is gone: {page}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_released_without_a_backup_while_its_event_would_be_dropped() {
    let (client, log) = answering(None, |_| Answer::Done);
    let events = Events::over(client.clone(), MANAGER);
    let about = ObjectReference::default();
    // Nothing is published before the first await.
    while events.has_room() {
        events.warn(&about, "Other", "");
    }
    let writer = Writer::over(client, MANAGER);
    let executor = Executor::new(writer, events, Memory::default(), HeldMetrics::new());
    let next = executor.act(&observed(), release(Outcome::Forced)).await;
    assert_eq!(next.unwrap(), Next::Wait(EVENTS_BUSY));
    assert!(log.take().is_empty());
    assert_eq!(executor.act(&observed(), release(Outcome::BackedUp)).await.unwrap(), Next::Written);
}
