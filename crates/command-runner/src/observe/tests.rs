//! The requests for a command and its target, and what each answer shows.

use std::{
    collections::BTreeMap,
    slice,
    sync::atomic::{AtomicBool, Ordering},
};

use command_runner::command::TargetId;
use operator_kit::{
    run::Triggers,
    testing::{Answer, Log, Sent, answering, refused},
};
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{command, kind, stored};

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
    (Observer::new(client.clone(), Discovery::new(client), memory.clone()), memory, log)
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

#[tokio::test(start_paused = true)]
async fn a_command_is_read_as_the_api_server_shows_it() {
    let one = restart(&json!({}));
    let read = async |answers| observer(answers).0.live(&one).await.unwrap();
    assert!(read(Answers::new()).await.is_none(), "it is gone");
    let another = stored("one", 10, &json!({"metadata": {"uid": "another"}}));
    assert!(read(Answers::from([(COMMAND, another)])).await.is_none());
    let shown = stored(
        "one",
        10,
        &json!({"spec": {"fast": true}, "metadata": {"resourceVersion": "8", "generation": 2}}),
    );
    let seen = read(Answers::from([(COMMAND, shown)])).await.unwrap();
    assert_eq!(seen.row.object.unwrap()["spec"]["fast"], true);
    assert_eq!((seen.metadata.generation, seen.metadata.resource_version.as_deref()), (Some(2), Some("8")));
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
async fn a_kind_that_is_not_served_is_asked_for_once_for_all_commands_that_wait_for_it() {
    let (observer, _, log) = observer(Answers::new());
    let (one, other) =
        (restart(&json!({})), restart(&json!({"metadata": {"name": "other", "uid": "other"}})));
    let look = async |command: &Command| {
        let to = command.row.target.as_ref().unwrap().as_ref().unwrap();
        assert_eq!(observer.look(command, to).await.unwrap(), Look::NotServed);
    };
    look(&one).await;
    let asked_once = asked(&log);
    look(&other).await;
    assert_eq!(asked(&log), Vec::<String>::new(), "it is known");
    tokio::time::sleep(Duration::from_secs(6)).await;
    tokio::join!(look(&one), look(&other));
    assert_eq!(asked(&log), asked_once);
}

#[tokio::test(start_paused = true)]
async fn an_end_in_a_status_counts_for_others_only_where_the_definition_has_one_for_a_run() {
    let condition = json!({
        "type": "Succeeded", "status": "True", "reason": "Complete", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    });
    let status = json!({"startTime": "2026-01-01T11:30:00Z", "conditions": [condition]});
    let rollbacks = kind("restarts", &json!({"supersedes": true}));
    let ended = command(&rollbacks, "ended", 10, &json!({ "status": status }));
    let mut without = definition();
    without["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources");
    let mut mixed = definition();
    let mut older = without["spec"]["versions"][0].clone();
    (older["name"], older["served"]) = (json!("v1beta1"), json!(true));
    mixed["spec"]["versions"].as_array_mut().unwrap().push(older);
    for (definition, counts) in [(definition(), true), (without, false), (mixed, false)] {
        let (observer, ..) = observer(Answers::from([(DEFINITION, definition)]));
        assert_eq!(observer.with_status(slice::from_ref(&ended)).await.unwrap().contains("restarts"), counts);
    }
    let (observer, ..) = observer(Answers::new());
    let unread = Observer { schemas: Schemas::new(answering(|_| refused(500)).0), ..observer };
    assert!(unread.with_status(slice::from_ref(&ended)).await.unwrap_err().contains("cannot be read"));
}

#[tokio::test(start_paused = true)]
async fn a_command_is_known_to_have_run_although_its_proof_and_its_status_are_lost_since() {
    let (observer, memory, _) = observer(answers(true));
    let one = restart(&json!({}));
    memory.came(&one.kind_id, "one", one.row.target_id());
    let observe = async || observer.observe(one.clone(), Backoffs::default()).await.unwrap();
    assert!(!observe().await.has_run());
    memory.tried(&one, None);
    let seen = observe().await;
    assert!(seen.has_run() && seen.found().is_some() && !seen.proves(&one));
}

#[tokio::test(start_paused = true)]
async fn a_pass_takes_note_of_the_targets_that_its_command_has_left() {
    let (observer, memory, _) = observer(answers(true));
    let one = restart(&json!({}));
    let former = TargetId { namespace: "here".into(), name: "a".into(), uid: "former".into() };
    memory.came(&one.kind_id, "one", Some(&former));
    memory.came(&one.kind_id, "one", one.row.target_id());
    observer.observe(one, Backoffs::default()).await.unwrap();
    assert!(memory.left("one").is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_others_do_while_the_target_is_read_counts() {
    let (answers, is_unknown) = (answers(true), Arc::new(AtomicBool::new(false)));
    let asked = is_unknown.clone();
    let (client, _) = answering(move |sent| {
        asked.fetch_or(path(sent) == SHOP, Ordering::Relaxed);
        Answer::Json(200, answers[path(sent)].clone())
    });
    let unknown = move || is_unknown.load(Ordering::Relaxed).then(|| "it broke".to_owned());
    let memory = Memory::new(Triggers::default(), unknown);
    let observer = Observer::new(client.clone(), Discovery::new(client), memory.clone());
    let one = restart(&json!({}));
    memory.came(&one.kind_id, "one", one.row.target_id());
    memory.tried(&one, None);
    let seen = observer.observe(one, Backoffs::default()).await.unwrap();
    assert!(seen.found().is_some() && seen.unknown.is_some_and(|why| why.ends_with("it broke")));
}
