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
    let released = r#"released_objects_total{entry="maps",outcome="backed_up"} 1"#;
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

/// What becomes of a forced release without an answer that is followed by another one with this answer: the metrics, and
/// those after the object is gone.
async fn after_no_answer(next: Answer) -> (String, String) {
    let (client, _) = answering(None, in_turn(&[Answer::Refusal(504, "Timeout"), next]));
    let (writer, metrics) = (Writer::over(client, MANAGER), HeldMetrics::new());
    let (nobody, _) = answering(None, |_| Answer::Done);
    let executor = Executor::new(writer, Events::over(nobody, MANAGER), Memory::default(), metrics.clone());
    for _ in 0..2 {
        executor.act(&observed(), release(Outcome::Forced)).await.unwrap_err();
    }
    let page = page_of(&metrics);
    executor.forget("u");
    (page, page_of(&metrics))
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_does_not_count_after_the_next_one_was_refused() {
    for (answer, reason) in
        [(Answer::Refusal(403, "Forbidden"), "Forbidden"), (Answer::Refusal(422, "Invalid"), "Invalid")]
    {
        let (page, once_gone) = after_no_answer(answer).await;
        assert!(page.contains(&format!("held_objects{{entry=\"maps\",reason=\"{reason}\"}} 1\n")), "{page}");
        assert!(!page.contains("ReleaseUnanswered"), "{page}");
        assert!(!once_gone.contains("released_objects_total{"), "somebody else released it: {once_gone}");
        assert!(!once_gone.contains("held_objects{"), "{once_gone}");
    }
    for answer in [Answer::Refusal(404, "NotFound"), Answer::Refusal(409, "Conflict"), Answer::Lost] {
        let (page, once_gone) = after_no_answer(answer.clone()).await;
        assert!(page.contains("reason=\"ReleaseUnanswered\"} 1\n"), "{answer:?}: {page}");
        assert!(once_gone.contains("outcome=\"forced\"} 1\n"), "it may have taken effect late: {once_gone}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_does_not_count_when_its_kind_is_watched_anew() {
    let (client, _) = answering(None, |_| Answer::Refusal(504, "Timeout"));
    let (writer, metrics) = (Writer::over(client.clone(), MANAGER), HeldMetrics::new());
    let executor = Executor::new(writer, Events::over(client, MANAGER), Memory::default(), metrics.clone());
    executor.act(&observed(), release(Outcome::Forced)).await.unwrap_err();
    executor.unwatched("u");
    let page = page_of(&metrics);
    assert!(!page.contains("released_objects_total{") && !page.contains("held_objects{"), "{page}");
    // It is still held, and its next release counts by itself.
    executor.act(&observed(), release(Outcome::Forced)).await.unwrap_err();
    executor.forget("u");
    let page = page_of(&metrics);
    assert!(page.contains("outcome=\"forced\"} 1\n"), "{page}");
}

/// Queues Events until there is no room, and nothing is published before the next await.
fn fill(events: &Events) {
    while events.has_room() {
        events.warn(&ObjectReference::default(), "Other", "");
    }
}

/// Another held object.
fn another(uid: &str) -> Observed {
    let (settings, mut object) = (settings(TEMPLATE, "backups"), target("shop"));
    object["metadata"]["uid"] = uid.into();
    held(&settings, &object, Situation::Absent { backup: backup() })
}

#[tokio::test(start_paused = true)]
async fn the_last_place_in_the_queue_of_events_serves_one_of_two_concurrent_releases() {
    let mut is_first = true;
    let (client, log) = answering(None, move |sent| {
        let hangs = sent.uri.contains("/events") && std::mem::take(&mut is_first);
        if hangs { Answer::Silence } else { Answer::Done }
    });
    let events = Events::over(client.clone(), MANAGER);
    fill(&events);
    while !events.has_room() {
        // The first Event leaves the queue, and hangs.
        tokio::task::yield_now().await;
    }
    let executor =
        Executor::new(Writer::over(client, MANAGER), events, Memory::default(), HeldMetrics::new());
    let (first, second) = (observed(), another("v"));
    let (first, second) = tokio::join!(
        executor.act(&first, release(Outcome::Forced)),
        executor.act(&second, release(Outcome::Forced)),
    );
    assert_eq!([first.unwrap(), second.unwrap()], [Next::Written, Next::Wait(EVENTS_BUSY)]);
    let sent = log.take_after(executor).await;
    let count = |is: fn(&Sent) -> bool| sent.iter().filter(|sent| is(sent)).count();
    let (released, told) =
        (count(|sent| sent.verb == "AMEND"), count(|sent| sent.body["reason"] == "ForceReleased"));
    assert_eq!((released, told), (1, 1), "each release has its Event");
}

#[tokio::test(start_paused = true)]
async fn a_release_without_a_backup_waits_for_room_for_its_event_once() {
    for outcome in [Outcome::Forced, Outcome::GivenUp] {
        // No Event is ever published.
        let (client, log) =
            answering(None, |sent| if sent.uri.contains("/events") { Answer::Silence } else { Answer::Done });
        let (events, metrics) = (Events::over(client.clone(), MANAGER), HeldMetrics::new());
        let writer = Writer::over(client, MANAGER);
        let executor = Executor::new(writer, events.clone(), Memory::default(), metrics.clone());
        let act = async |observed: &Observed, outcome| {
            fill(&events);
            executor.act(observed, release(outcome)).await.unwrap()
        };
        assert_eq!(act(&observed(), outcome).await, Next::Wait(EVENTS_BUSY));
        tokio::time::advance(Duration::from_secs(20)).await;
        let rest = Duration::from_secs(40);
        assert_eq!(act(&observed(), outcome).await, Next::Wait(rest), "something asked for an earlier pass");
        assert_eq!(act(&another("v"), outcome).await, Next::Wait(EVENTS_BUSY), "each object waits");
        assert!(log.take().is_empty());
        tokio::time::advance(rest).await;
        assert_eq!(act(&observed(), outcome).await, Next::Written, "an Event holds up nothing for good");
        assert_eq!(log.take().len(), 1);
        let page = page_of(&metrics);
        let label = if outcome == Outcome::Forced { "forced" } else { "given_up" };
        assert!(page.contains(&format!("outcome=\"{label}\"}} 1\n")), "it is counted: {page}");
        assert_eq!(act(&another("w"), Outcome::BackedUp).await, Next::Written);
    }
}
