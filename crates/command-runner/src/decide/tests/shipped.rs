//! The commands of `BasicDeployments`, as the charts describe them.

use catena_api::{Pin, keys};
use command_kinds::{CommandKind, Kinds, definition::describe};

use super::*;

/// The kinds of a chart.
fn listed(values: &str) -> Value {
    serde_saphyr::from_str::<Value>(values).unwrap()["kinds"].clone()
}

fn runner() -> Value {
    listed(include_str!("../../../../../charts/command-runner/values.yaml"))
}

fn shipped(resource: &str) -> Arc<CommandKind> {
    let kinds: Kinds = serde_json::from_value(json!({"kinds": runner()})).unwrap();
    assert_eq!(kinds.problems, Vec::<String>::new());
    kinds.listed.iter().find(|kind| kind.resource.plural == resource).unwrap().clone()
}

/// A command that was created at this minute, for the `BasicDeployment` `web`.
fn one(resource: &str, name: &str, minute: u32, more: &Value) -> Arc<Command> {
    let owner = json!({
        "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "web",
    });
    let mut object = json!({
        "metadata": {"ownerReferences": [owner]},
        "spec": {"targetRef": {"name": "web"}, "activeDeadlineSeconds": 86400},
    });
    merge(&mut object, more);
    command(&shipped(resource), name, minute, &object)
}

fn restart(name: &str, minute: u32) -> Arc<Command> {
    one("basicdeploymentrestarts", name, minute, &json!({}))
}

fn rollback(to: i64) -> Arc<Command> {
    one("basicdeploymentrollbacks", "back", 30, &json!({"spec": {"toRevision": to}}))
}

/// A `BasicDeployment` that serves its second revision.
fn web(ran: &[&Arc<Command>], more: &Value) -> Look {
    let Look::Found(mut target) = shop(ran, &json!({})) else { panic!() };
    let stored = |number: i64, hash: &str| json!({"number": number, "hash": hash, "at": format!("2026-01-01T10:0{number}:00Z")});
    target.object = json!({
        "metadata": {"name": "web", "namespace": "here", "uid": "web", "resourceVersion": "9", "generation": 3},
        "spec": {"replicas": 3},
        "status": {
            "observedGeneration": 3, "ready": true, "active": 3, "updated": 3, "child": {"hash": "new"},
            "revisions": [stored(1, "old"), stored(2, "new")], "conditions": [],
        },
    });
    merge(&mut target.object, more);
    without_nulls(&mut target.object);
    Look::Found(target)
}

/// Of nulls, the API server keeps those of nullable fields.
fn without_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|name, field| name == "restartedAt" || !field.is_null());
        fields.values_mut().for_each(without_nulls);
    }
}

fn patch_of(command: &Arc<Command>, target: Look) -> Value {
    match decide(&observed(command, &[command], target)) {
        Action::Run(mut patch) => {
            patch["metadata"]["annotations"].as_object_mut().unwrap().remove(keys::COMMANDS);
            patch
        }
        other => panic!("instead of a patch: {other:?}"),
    }
}

fn pin_of(command: &Arc<Command>, target: Look) -> Pin {
    let patch = patch_of(command, target);
    assert_eq!(patch["spec"], Value::Null);
    serde_json::from_str(patch["metadata"]["annotations"][keys::PINNED_REVISION].as_str().unwrap()).unwrap()
}

fn pin(hash: &str, rejects: &str) -> Pin {
    Pin { uid: "web".into(), hash: hash.into(), rejects: rejects.into() }
}

#[test]
fn one_description_serves_three_charts_and_stands_on_the_definitions() {
    let kinds = runner();
    assert_eq!(kinds, listed(include_str!("../../../../../charts/command-binder/values.yaml")));
    assert_eq!(kinds, listed(include_str!("../../../../../charts/command-reaper/values.yaml")));
    for definition in catena_api::crds() {
        let definition: operator_watch::PrunedObject =
            serde_json::from_value(serde_json::to_value(definition).unwrap()).unwrap();
        let metadata = &definition.metadata;
        let Some(text) = metadata.annotations.as_ref().and_then(|all| all.get(keys::BINDING)) else {
            continue;
        };
        let mut entry = serde_saphyr::from_str::<Value>(text).unwrap();
        let kind = describe(&definition).unwrap();
        for (field, value) in [
            ("id", &kind.resource.plural),
            ("group", &kind.resource.group),
            ("version", &kind.resource.version),
            ("resource", &kind.resource.plural),
            ("kind", &kind.resource.kind),
        ] {
            entry[field] = json!(value);
        }
        assert!(kinds.as_array().unwrap().contains(&entry), "{entry}");
    }
}

#[test]
fn a_restart_sets_the_token_to_its_creation_and_never_lowers_it() {
    let one = restart("one", 30);
    let token = |target: Value| patch_of(&one, web(&[], &target))["spec"]["restartedAt"].clone();
    assert_eq!(token(json!({})), "2026-01-01T11:30:00Z");
    assert_eq!(token(json!({"spec": {"restartedAt": null}})), "2026-01-01T11:30:00Z");
    assert_eq!(token(json!({"spec": {"restartedAt": "2026-01-01T11:00:00Z"}})), "2026-01-01T11:30:00Z");
    // Another API server's clock is ahead.
    let ahead = restart("ahead", 40);
    let later = web(&[&ahead], &json!({"spec": {"restartedAt": "2026-01-01T11:40:00Z"}}));
    assert_eq!(patch_of(&one, later)["spec"]["restartedAt"], "2026-01-01T11:40:00Z");
}

#[test]
fn a_restart_that_would_change_no_token_fails() {
    let one = restart("one", 30);
    for (token, reason) in [
        ("2026-01-01T11:30:00Z", "Superseded"),
        ("2026-01-01T11:45:00.5Z", "Superseded"),
        ("9999-12-31T23:59:59Z", "TokenInFuture"),
    ] {
        let target = web(&[], &json!({"spec": {"restartedAt": token}}));
        let seen = observed(&one, &[&one], target);
        assert_eq!(reason_of(&seen), fails(reason), "{token}");
        assert!(message_of(&seen).starts_with(&format!("the restart token is {token}, which no command")));
    }
}

#[test]
fn a_restart_succeeds_only_by_a_status_of_its_own_generation() {
    let one = restart("one", 30);
    let token = json!({"spec": {"restartedAt": "2026-01-01T11:30:00Z"}});
    for (more, expected) in [
        (json!({}), ("Complete".to_owned(), Some(true))),
        (json!({"metadata": {"generation": 4}}), waits("Running")),
        (json!({"status": {"ready": false, "updated": 1}}), waits("Running")),
        (json!({"status": {"updated": null}}), ("Complete".to_owned(), Some(true))),
        (json!({"spec": {"restartedAt": "2026-01-01T11:00:00Z"}}), fails("Superseded")),
        (json!({"spec": {"restartedAt": null}}), fails("Superseded")),
    ] {
        let mut target = token.clone();
        merge(&mut target, &more);
        assert_eq!(reason_of(&observed(&one, &[&one], web(&[&one], &target))), expected, "{more}");
    }
    let condition = json!({
        "type": "RestartBlocked", "status": "True", "reason": "ChildHasNoRestart", "message": "no field",
        "observedGeneration": 3,
    });
    let mut target = token;
    merge(&mut target, &json!({"status": {"conditions": [condition]}}));
    let seen = observed(&one, &[&one], web(&[&one], &target));
    assert_eq!((reason_of(&seen), message_of(&seen)), (fails("ChildHasNoRestart"), "no field".into()));
}

#[test]
fn a_restart_under_way_says_what_keeps_it() {
    let one = restart("one", 30);
    let told = |more: Value| {
        let mut target = json!({"spec": {"restartedAt": "2026-01-01T11:30:00Z"}});
        merge(&mut target, &more);
        message_of(&observed(&one, &[&one], web(&[&one], &target)))
    };
    assert_eq!(told(json!({})), "all replicas are new and serving");
    let former = json!({"metadata": {"generation": 4}});
    assert_eq!(told(former), "its controller has not reported on the restart yet");
    assert_eq!(told(json!({"status": {"ready": false}})), "replicas are being replaced");
    let blocked =
        json!({"type": "RestartBlocked", "status": "True", "reason": "Forbidden", "message": "no right"});
    assert_eq!(told(json!({"status": {"ready": false, "conditions": [blocked]}})), "no right");
}

#[test]
fn progress_counts_new_replicas_that_serve() {
    let one = restart("one", 30);
    let target = json!({
        "spec": {"restartedAt": "2026-01-01T11:30:00Z"}, "status": {"ready": false, "updated": 2, "active": 9},
    });
    let Action::Report(status) = decide(&observed(&one, &[&one], web(&[&one], &target))) else { panic!() };
    assert_eq!(status.progress.as_deref(), Some("2/3"));
}

#[test]
fn commands_wait_in_a_pause_and_for_a_child() {
    for one in [restart("one", 30), rollback(0)] {
        let seen = |more: Value| observed(&one, &[&one], web(&[], &more));
        assert_eq!(reason_of(&seen(json!({"spec": {"paused": true}}))), waits("Paused"));
        assert_eq!(reason_of(&seen(json!({"status": {"child": null}}))), waits("NoChild"));
    }
    let behind = observed(&rollback(0), &[&rollback(0)], web(&[], &json!({"metadata": {"generation": 4}})));
    assert_eq!(reason_of(&behind), waits("Updating"));
}

#[test]
fn a_rollback_pins_the_revision_that_its_author_saw_and_says_what_it_rejects() {
    assert_eq!(pin_of(&rollback(0), web(&[], &json!({}))), pin("old", "new"));
    assert_eq!(pin_of(&rollback(1), web(&[], &json!({}))), pin("old", "new"));
    assert_eq!(pin_of(&rollback(2), web(&[], &json!({}))), pin("new", "new"), "it rejects nothing");
    // While it is held, what was rejected before still is.
    let text = pin("old", "rejected before").to_json();
    let held = json!({"metadata": {"annotations": {keys::PINNED_REVISION: text}}});
    assert_eq!(pin_of(&rollback(2), web(&[], &held)), pin("new", "rejected before"));
}

#[test]
fn a_rollback_to_the_previous_revision_is_superseded_by_a_newer_one_or_another_rollback() {
    let newer = |hash: &str, at: &str| {
        let stored = |number: i64, hash: &str, at: &str| json!({"number": number, "hash": hash, "at": at});
        let revisions = json!([stored(2, "new", "2026-01-01T10:00:00Z"), stored(3, hash, at)]);
        json!({"status": {"revisions": revisions}})
    };
    let seen = |to: i64, target: &Value| {
        let one = rollback(to);
        observed(&one, &[&one], web(&[], target))
    };
    let later = newer("newest", "2026-01-01T11:30:01Z");
    assert_eq!(reason_of(&seen(0, &later)), fails("Superseded"));
    assert_eq!(reason_of(&seen(2, &later)), fails("Superseded"), "nobody saw what it would reject");
    // What was recorded in the second of the command counts as seen.
    let same = newer("newest", "2026-01-01T11:30:00Z");
    assert!(matches!(decide(&seen(0, &same)), Action::Run(_)));
    // Another rollback has numbered the older revision anew.
    let mut other = newer("old", "2026-01-01T11:30:01Z");
    let text = pin("old", "new").to_json();
    merge(&mut other, &json!({"metadata": {"annotations": {keys::PINNED_REVISION: text}}}));
    assert_eq!(reason_of(&seen(0, &other)), fails("Superseded"));
    assert!(matches!(decide(&seen(2, &other)), Action::Run(_)), "a number means the same as before");
}

#[test]
fn a_revision_that_is_not_there_fails_the_rollback() {
    let seen = |to: i64, target: Value| {
        let one = rollback(to);
        let seen = observed(&one, &[&one], web(&[], &target));
        (reason_of(&seen), message_of(&seen))
    };
    let missing = "there is no revision 9; existing ones: 1, 2".to_owned();
    assert_eq!(seen(9, json!({})), (fails("RevisionNotFound"), missing));
    let none = json!({"status": {"revisions": null}});
    assert_eq!(seen(0, none), (fails("RevisionNotFound"), "there is no previous revision".into()));
}

#[test]
fn a_rollback_succeeds_when_the_pinned_revision_serves_and_fails_when_it_cannot() {
    let one = rollback(0);
    let text = pin("old", "new").to_json();
    let pinned = json!({"metadata": {"annotations": {keys::PINNED_REVISION: text}}});
    let condition = |type_: &str, reason: &str, message: &str| json!({"type": type_, "status": "True", "reason": reason, "message": message});
    let stalled = condition("Stalled", "ChildNotOwned", "it is somebody else's");
    let rolled_back =
        |number: i64| condition("RolledBack", "Rollback", &format!("revision {number} stays until …"));
    for (more, expected) in [
        (json!({"status": {"child": {"hash": "old"}}}), ("Complete".to_owned(), Some(true))),
        (json!({"status": {"child": {"hash": "old"}, "ready": false}}), waits("Running")),
        (json!({}), waits("Running")),
        (json!({"metadata": {"annotations": null}}), fails("Superseded")),
        (json!({"status": {"conditions": [stalled.clone(), rolled_back(1)]}}), fails("ChildNotOwned")),
        // The conditions are those of the rollback before it.
        (json!({"status": {"conditions": [stalled, rolled_back(2)]}}), waits("Running")),
    ] {
        let mut target = pinned.clone();
        merge(&mut target, &more);
        assert_eq!(reason_of(&observed(&one, &[&one], web(&[&one], &target))), expected, "{more}");
    }
}
