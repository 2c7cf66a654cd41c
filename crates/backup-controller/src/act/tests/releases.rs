//! The requests, the Event and the count of a release, and the effects of each answer to it.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_finalizer_of_the_very_object_is_removed_and_others_stay() {
    let mut observed = observed();
    let held = observed.held.as_mut().unwrap();
    held.finalizers = vec!["a.example/x".into(), BACKUP_FINALIZER.into()];
    held.is_annotated = true;
    let acted = act_on(&observed, release(Outcome::BackedUp), &[Answer::Done]).await;
    assert_eq!(outcome(&acted), Ok(Requeue::Written));
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
async fn a_release_without_a_backup_is_told_and_counted_once_the_server_has_carried_it_out() {
    let unadmitted = json!({
        "kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError",
        "message": "Internal error occurred: failed calling webhook \"a.example.com\": connection refused",
    });
    for (outcome, reason, label) in [
        (Outcome::GivenUp, "ReleasedWithoutBackup", "given_up"),
        (Outcome::Forced, "ForceReleased", "forced"),
    ] {
        let released = act(release(outcome), Answer::Done).await;
        assert_eq!(released.told, [reason]);
        let counted = format!("outcome=\"{label}\"}} 1\n");
        assert!(released.metrics.contains(&counted), "{}", released.metrics);
        for answer in [
            Answer::Lost,
            Answer::Refusal(502, ""),
            Answer::Refusal(403, ""),
            Answer::Refusal(422, ""),
            Answer::Json(500, unadmitted.clone()),
        ] {
            let failed = act(release(outcome), answer.clone()).await;
            assert!(failed.told.is_empty(), "{answer:?}");
            assert!(!failed.metrics.contains("released_objects_total{"), "{answer:?}");
            assert!(failed.metrics.contains("held_objects{"), "{answer:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_release_of_a_kind_is_an_increase() {
    let (client, _) = answering(None, |_| Answer::Done);
    let (writer, metrics) = (Writer::over(client.clone(), MANAGER), HeldMetrics::default());
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
async fn an_object_that_others_keep_after_its_release_is_not_held_any_more() {
    let (client, _) = answering(None, |_| Answer::Refusal(504, "Timeout"));
    let (writer, metrics) = (Writer::over(client.clone(), MANAGER), HeldMetrics::default());
    let executor = Executor::new(writer, Events::over(client, MANAGER), Memory::default(), metrics.clone());
    executor.act(&observed(), release(Outcome::Forced)).await.unwrap_err();
    assert!(page_of(&metrics).contains("held_objects{"));
    let mut kept = observed();
    kept.held = None;
    Arc::make_mut(&mut kept.target).row.finalizers = vec!["a.example/x".into()];
    executor.act(&kept, Action::Settle).await.unwrap();
    let page = page_of(&metrics);
    assert!(!page.contains("held_objects{"), "{page}");
}
