//! The requests of each action.

use operator_kit::report::StatusAge;

use super::*;

/// The only request of a successful action.
async fn request_of(action: Action) -> Sent {
    let Acted { mut sent, result, .. } = act(action, &[DONE]).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    assert_eq!(sent.len(), 1, "{sent:?}");
    sent.remove(0)
}

fn sent(verb: &str, uri: &str, body: Value) -> Sent {
    Sent { verb: verb.to_owned(), uri: uri.to_owned(), body }
}

#[tokio::test(start_paused = true)]
async fn a_revision_is_created_under_the_name_that_follows_from_what_it_stores() {
    let name = revision::name("web", "deployment", "new");
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {
            "name": name, "namespace": "shop",
            "labels": {keys::DEPLOYMENT_UID: "deployment"},
            "annotations": {keys::HASH: "new"},
            "ownerReferences": [owner("deployment")],
        },
        "data": rendered().object,
        "revision": 4,
    });
    let uri = format!("{REVISIONS}?&fieldManager={MANAGER}&fieldValidation=Strict");
    assert_eq!(request_of(record()).await, sent("POST", &uri, expected));
}

#[tokio::test(start_paused = true)]
async fn a_revision_is_renumbered_only_as_the_very_object_that_was_seen() {
    let uri = format!("{REVISIONS}/web-new?&fieldManager={MANAGER}&fieldValidation=Strict");
    let renumbered = json!({
        "metadata": {
            "name": "web-new", "namespace": "shop", "uid": "uid-of-web-new",
            "annotations": {keys::NUMBERED_AT: "2026-01-03T00:26:40Z"},
        },
        "revision": 5,
    });
    assert_eq!(request_of(renumber()).await, sent("MERGE", &uri, renumbered));
}

#[tokio::test(start_paused = true)]
async fn a_revision_is_adopted_with_the_uid_from_which_its_name_follows() {
    let uri = format!("{REVISIONS}/web-old?&force=true&fieldManager={MANAGER}&fieldValidation=Strict");
    let adopted = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {
            "name": "web-old", "namespace": "shop", "uid": "uid-of-web-old",
            "labels": {keys::DEPLOYMENT_UID: "deployment"},
            "annotations": {keys::MADE_FOR: "former"},
            "ownerReferences": [owner("deployment")],
        },
    });
    assert_eq!(request_of(adopt()).await, sent("APPLY", &uri, adopted));
}

/// The applied fields of the child, with a restart token.
fn applied(token: &str) -> Value {
    let mut object = desired().object;
    object["spec"]["replicas"] = 3.into();
    object["spec"]["restartedAt"] = token.into();
    object
}

#[tokio::test(start_paused = true)]
async fn a_child_is_created_without_taking_a_field_from_anybody() {
    let uri = format!("{CHILDREN}/web?&fieldManager={MANAGER}&fieldValidation=Strict");
    assert_eq!(request_of(create()).await, sent("APPLY", &uri, applied("2026-01-03T00:00:00Z")));
}

#[tokio::test(start_paused = true)]
async fn a_child_is_applied_by_uid_and_keeps_its_own_restart_token_if_that_is_the_present_one() {
    let uri = format!("{CHILDREN}/web?&force=true&fieldManager={MANAGER}&fieldValidation=Strict");
    let mut expected = applied("2026-01-01T00:00:00Z");
    expected["metadata"]["uid"] = "child".into();
    expected["metadata"]["resourceVersion"] = "5".into();
    assert_eq!(request_of(apply(true)).await, sent("APPLY", &uri, expected));
}

#[tokio::test(start_paused = true)]
async fn a_pin_is_removed_from_exactly_what_was_observed() {
    let metadata = |annotations: Value| {
        json!({
            "namespace": "shop", "name": "web", "uid": "deployment", "resourceVersion": "7",
            "annotations": annotations,
        })
    };
    let uri = format!("{DEPLOYMENTS}/web?&fieldManager={MANAGER}&fieldValidation=Strict");
    let unpinned = json!({"metadata": metadata(json!({keys::PINNED_REVISION: null}))});
    let answer = Answer::Object(json!({"metadata": {"name": "web", "uid": "deployment"}}));
    let Acted { sent: asked, result, .. } = act(Action::Unpin, &[answer]).await;
    assert_eq!((result.unwrap(), asked), (Requeue::Written, vec![sent("MERGE", &uri, unpinned)]));
}

#[tokio::test(start_paused = true)]
async fn a_child_is_handed_a_restart_token_in_exactly_the_state_that_was_seen() {
    let uri = format!("{CHILDREN}/web?&fieldManager={MANAGER}&fieldValidation=Strict");
    let metadata = json!({"name": "web", "namespace": "shop", "uid": "child", "resourceVersion": "5"});
    let handed = json!({"metadata": metadata, "spec": {"restartedAt": "2026-01-02T00:00:00Z"}});
    assert_eq!(request_of(hand_token()).await, sent("MERGE", &uri, handed));
}

#[tokio::test(start_paused = true)]
async fn a_child_is_scaled_and_stripped_in_single_fields_of_the_very_object() {
    let uri = format!("{CHILDREN}/web?&fieldManager={MANAGER}&fieldValidation=Strict");
    let metadata = json!({"name": "web", "namespace": "shop", "uid": "child"});
    let scaled = json!({"metadata": metadata.clone(), "spec": {"replicas": 3}});
    assert_eq!(request_of(scale(false)).await, sent("MERGE", &uri, scaled));
    let stripped = json!({"metadata": metadata, "spec": {"parameters": {"env.EVIL": null}}});
    assert_eq!(request_of(strip()).await, sent("MERGE", &uri, stripped));
    let former = json!({
        "metadata": {"name": "old", "namespace": "shop", "uid": "former"}, "spec": {"replicas": 2},
    });
    let uri = format!("{CHILDREN}/old?&fieldManager={MANAGER}&fieldValidation=Strict");
    assert_eq!(request_of(scale_former()).await, sent("MERGE", &uri, former));
}

#[tokio::test(start_paused = true)]
async fn a_child_with_its_replicas_is_handed_fields_and_loses_those_that_are_no_longer_set() {
    let mut observed = observed();
    Arc::make_mut(&mut observed.deployment).spec.min_ready_seconds = Some(5);
    let record = r#"{"spec.minReadySeconds":5}"#;
    let body_of =
        async |observed: &Observed, action| act_on(observed, action, &[DONE]).await.sent.remove(0).body;
    let body = body_of(&observed, scale(false)).await;
    assert_eq!(body["spec"]["minReadySeconds"], 5);
    assert_eq!(body["metadata"]["annotations"], json!({keys::HANDED: record}));
    // A field that the server refuses would hold up the scaling.
    assert_eq!(body_of(&observed, scale_former()).await["spec"], json!({"replicas": 2}));
    observed.desired = Ok(Desired::new(&observed.deployment, rendered(), child("web", "child").kind.clone()));
    let (desired, replicas) = (observed.desired.clone().unwrap(), 3);
    let body = body_of(&observed, Action::Create { desired, replicas }).await;
    assert_eq!(body["spec"]["minReadySeconds"], 5);
    assert_eq!(body["metadata"]["annotations"], json!({keys::HASH: "new", keys::HANDED: record}));

    Arc::make_mut(&mut observed.deployment).spec.min_ready_seconds = None;
    let mut given = child("web", "child");
    Arc::make_mut(&mut given).object["metadata"]["annotations"][keys::HANDED] = record.into();
    let body =
        body_of(&observed, Action::Scale { child: given, replicas: 3, heals: false, is_former: false }).await;
    assert_eq!(body["spec"], json!({"replicas": 3, "minReadySeconds": null}));
    assert_eq!(body["metadata"]["annotations"], json!({keys::HANDED: null}));
}

#[tokio::test(start_paused = true)]
async fn owner_references_of_children_and_revisions_get_the_present_version() {
    let mut reference = owner("deployment");
    reference["apiVersion"] = "catena.dev/v1alpha0".into();
    let live = |uid: &str| {
        let metadata = json!({"uid": uid, "resourceVersion": "9", "ownerReferences": [reference.clone()]});
        Answer::Object(json!({ "metadata": metadata }))
    };
    let refresh =
        Action::RefreshOwner { children: vec![child("web", "child")], revisions: vec![revision("web-new")] };
    let answers = [live("child"), Answer::Done, live("uid-of-web-new"), Answer::Done];
    let Acted { sent, result, .. } = act(refresh, &answers).await;
    assert_eq!(result.unwrap(), Requeue::Written);
    let path = |sent: &Sent| sent.uri.split('?').next().unwrap_or_default().to_owned();
    let asked: Vec<_> = sent.iter().map(|sent| format!("{} {}", sent.verb, path(sent))).collect();
    let (child, revision) = (format!("{CHILDREN}/web"), format!("{REVISIONS}/web-new"));
    let expected = [("GET", &child), ("AMEND", &child), ("GET", &revision), ("AMEND", &revision)];
    assert_eq!(asked, expected.map(|(verb, path)| format!("{verb} {path}")));
    for amended in [&sent[1], &sent[3]] {
        let path = "/metadata/ownerReferences/0/apiVersion";
        let replaced = json!({"op": "replace", "path": path, "value": "catena.dev/v1alpha1"});
        assert_eq!(amended.body[2], replaced);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_is_the_very_object_that_was_seen() {
    let of = |uid: &str| json!({"preconditions": {"uid": uid}});
    let mut child = of("uid-of-old");
    child["propagationPolicy"] = "Foreground".into();
    let deleted = sent("DELETE", &format!("{CHILDREN}/old?"), child);
    assert_eq!(request_of(delete(&["old"])).await, deleted);
    let pruned = sent("DELETE", &format!("{REVISIONS}/web-old?"), of("uid-of-web-old"));
    assert_eq!(request_of(prune()).await, pruned);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_to_the_very_object() {
    let uri = format!("{DEPLOYMENTS}/web/status?&fieldManager={MANAGER}&fieldValidation=Strict");
    let Action::WriteStatus(status) = write_status() else { panic!() };
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": "deployment"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "test", "path": "/status", "value": null},
        {"op": "add", "path": "/status", "value": status},
    ]);
    assert_eq!(request_of(write_status()).await, sent("AMEND", &uri, patch));
}

#[tokio::test(start_paused = true)]
async fn refusing_waiting_and_settling_ask_nothing_of_the_server() {
    let refusal = revision::gone("new");
    let refused = act(Action::Refuse(refusal.clone()), &[DONE]).await;
    assert_eq!(refused.result, Err(refusal.into()));
    let second = Duration::from_secs(1);
    let waited = act(Action::Wait(second), &[DONE]).await;
    assert_eq!(waited.result.unwrap(), Requeue::After(second));
    let settled = act(Action::Settle, &[DONE]).await;
    assert_eq!(settled.result.unwrap(), Requeue::OnChange);
    assert!(refused.sent.is_empty() && waited.sent.is_empty() && settled.sent.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_age_of_a_status_is_counted_from_its_write() {
    let (client, _) = answering(|_| DONE);
    let executor = Executor::new(Writer::over(client, MANAGER), revisions(), Memory::default());
    assert!(matches!(executor.status_age(&deployment()), StatusAge::Unwritten(_)));
    let delay = Duration::from_secs(12);
    tokio::time::advance(delay).await;
    assert_eq!(executor.status_age(&deployment()), StatusAge::Unwritten(delay));
    executor.act(&observed(), write_status()).await.unwrap();
    assert_eq!(executor.status_age(&deployment()), StatusAge::Written(Duration::ZERO));
}
