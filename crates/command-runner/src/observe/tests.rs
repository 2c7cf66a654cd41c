//! The requests for a command and its target, and what each answer shows.

use std::collections::BTreeMap;

use command_runner::command::TargetId;
use operator_kit::{
    run::Triggers,
    testing::{Answer, Log, Sent, answering},
};
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{command, kind};

const SHOPS: &str = "/apis/apps.example/v1";
const SHOP: &str = "/apis/apps.example/v1/namespaces/here/shops/a";
const COMMAND: &str = "/apis/ops.example/v1/namespaces/here/restarts/one";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/restarts.ops.example";

type Answers = BTreeMap<&'static str, Value>;

/// A server with a shop, on which nothing ran, and a definition whose status may have all fields of a run.
fn answers(is_namespaced: bool) -> Answers {
    let resources = json!([{
        "name": "shops", "singularName": "", "namespaced": is_namespaced, "kind": "Shop", "verbs": ["get"],
    }]);
    let list = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps.example/v1", "resources": resources,
    });
    let shop = json!({"metadata": {"name": "a", "namespace": "here", "uid": "shop"}, "spec": {}});
    Answers::from([(SHOPS, list), (SHOP, shop), (DEFINITION, definition())])
}

fn definition() -> Value {
    let conditions = json!({
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"x-kubernetes-preserve-unknown-fields": true},
    });
    let status = json!({
        "x-kubernetes-preserve-unknown-fields": true, "properties": {"conditions": conditions},
    });
    let version = json!({
        "name": "v1", "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"properties": {"status": status}}},
    });
    json!({"metadata": {"name": "restarts.ops.example"}, "spec": {"versions": [version]}})
}

/// An observer of a server with these answers, by path, its memory, and the log of requests.
fn observer(answers: Answers) -> (Observer, Memory, Log) {
    let (client, log) = answering(move |sent| match answers.get(path(sent)) {
        Some(body) => Answer::Json(200, body.clone()),
        None => Answer::Refusal(404, "NotFound"),
    });
    let memory = Memory::new(Triggers::default(), || None);
    (Observer::new(client.clone(), ServedKinds::new(client), memory.clone()), memory, log)
}

fn path(sent: &Sent) -> &str {
    sent.uri.split('?').next().unwrap_or_default()
}

fn asked(log: &Log) -> Vec<String> {
    log.take().iter().map(|sent| path(sent).to_owned()).collect()
}

fn restart(more: &Value) -> Arc<Command> {
    command(&kind("restarts", &json!({"deadline": 1_000_000_000_i64})), "one", 10, more)
}

/// The same as the API server has it.
fn live(more: &Value) -> Value {
    let mut object = json!({
        "metadata": {
            "name": "one", "namespace": "here", "uid": "one", "resourceVersion": "7", "generation": 1,
            "creationTimestamp": "2026-01-01T11:10:00Z",
            "ownerReferences": [{"apiVersion": "apps.example/v1", "kind": "Shop", "name": "a", "uid": "shop"}],
        },
        "spec": {"target": "a"},
    });
    crate::fixtures::merge(&mut object, more);
    object
}

#[tokio::test(start_paused = true)]
async fn a_command_runs_only_while_the_api_server_shows_that_it_waits() {
    let ended = json!({"status": {"conditions": [{
        "type": "Succeeded", "status": "False", "reason": "Closed", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }]}});
    for (more, still_waits) in [
        (json!({}), true),
        (json!({"metadata": {"uid": "another"}}), false),
        (json!({"metadata": {"generation": 2}}), false),
        (json!({"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}}), false),
        (json!({"metadata": {"ownerReferences": []}}), false),
        (ended, false),
    ] {
        let (observer, ..) = observer(Answers::from([(COMMAND, live(&more))]));
        let one = restart(&json!({}));
        assert_eq!(observer.still_waits(&one).await.unwrap(), still_waits, "{more}");
    }
    let one = restart(&json!({}));
    let (observer, ..) = observer(Answers::new());
    assert!(!observer.still_waits(&one).await.unwrap(), "it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_does_not_fit_is_asked_for_again_because_the_definition_may_be_another_one() {
    let (observer, _, log) = observer(answers(false));
    let one = restart(&json!({}));
    let to = one.row.target.as_ref().unwrap().as_ref().unwrap();
    assert_eq!(observer.look(&one, to).await.unwrap(), Look::OtherScope);
    assert_eq!(asked(&log), [SHOPS]);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(observer.look(&one, to).await.unwrap(), Look::OtherScope);
    assert_eq!(asked(&log), [SHOPS]);
}

#[tokio::test(start_paused = true)]
async fn a_pass_takes_note_of_the_targets_that_its_command_has_left() {
    let (observer, memory, _) = observer(answers(true));
    let one = restart(&json!({}));
    let former = TargetId { namespace: "here".into(), uid: "former".into() };
    memory.came(&one.source.id, "one", Some(&former));
    memory.came(&one.source.id, "one", one.row.target_id());
    observer.observe(one, Backoffs::default()).await.unwrap();
    assert!(memory.left("one").is_empty());
}
