//! The requests for a command, and the effects of each answer on its target.

use std::{collections::BTreeMap, time::Duration};

use command_kinds::CommandKind;
use operator_kit::testing::{Answer, Log, Sent, answering};
use operator_watch::Failure;
use serde_json::{Value, json};

use super::*;
use crate::fixtures;

const SHOPS: &str = "/apis/apps.example/v1";
const SHOP: &str = "/apis/apps.example/v1/namespaces/here/shops/a";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/restarts.ops.example";

/// Code and body, by path; other paths are unknown to the server. Without a code, the answer is lost.
type Answers = BTreeMap<&'static str, (Option<u16>, Value)>;

/// A server that serves shops.
fn serving_shops() -> Answers {
    let shops =
        json!([{"name": "shops", "singularName": "", "namespaced": true, "kind": "Shop", "verbs": ["get"]}]);
    let list = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps.example/v1", "resources": shops,
    });
    Answers::from([(SHOPS, (Some(200), list))])
}

fn failure(code: u16, about: &str) -> (Option<u16>, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no",
        "reason": if code == 404 { "NotFound" } else { "" },
        "metadata": {}, "details": {"name": about},
    });
    (Some(code), status)
}

fn shop(metadata: &Value) -> (Option<u16>, Value) {
    (Some(200), json!({ "metadata": metadata }))
}

fn command(binding: &Value, metadata: &Value) -> Arc<DynamicRow<CommandRow>> {
    let mut file = json!({
        "id": "restarts", "group": "ops.example", "version": "v1", "resource": "restarts", "kind": "Restart",
        "target": {
            "name": "object.spec.target",
            "kinds": [{"group": "apps.example", "version": "v1", "resource": "shops", "kind": "Shop"}],
        },
    });
    merge(&mut file, binding);
    let kind = Arc::new(CommandKind::compile(serde_json::from_value(file).unwrap()).unwrap());
    let mut object =
        json!({"metadata": {"name": "c", "namespace": "here", "uid": "command"}, "spec": {"target": "a"}});
    merge(&mut object["metadata"], metadata);
    Arc::new(fixtures::command(&kind, serde_json::from_value(object).unwrap()))
}

fn merge(into: &mut Value, more: &Value) {
    for (key, value) in more.as_object().unwrap() {
        into[key] = value.clone();
    }
}

/// An observer of a server with these answers, and the log of requests.
fn observer(answers: Answers) -> (Observer, Log) {
    let (client, log) = answering(move |sent| {
        let unknown = failure(404, "");
        match answers.get(path(sent)).unwrap_or(&unknown).clone() {
            (None, _) => Answer::Lost,
            (Some(code), body) => Answer::Json(code, body),
        }
    });
    let discovery = Discovery::new(client.clone());
    (Observer::new(client, discovery, Waiting::default()), log)
}

fn path(sent: &Sent) -> &str {
    sent.uri.split('?').next().unwrap_or_default()
}

/// The methods and paths of requests.
fn asked(log: &Log) -> Vec<String> {
    log.take().iter().map(|sent| format!("{} {}", sent.verb, path(sent))).collect()
}

/// The target of a command in the observation of a pass, and the requested paths.
async fn look(answers: Answers) -> (Result<Option<Target>, ApiError>, Vec<String>) {
    let (observer, log) = observer(answers);
    let seen = observer.observe(command(&json!({}), &json!({})), Backoffs::default()).await;
    (seen.map(|seen| seen.target), asked(&log))
}

fn shops_with(answer: (Option<u16>, Value)) -> Answers {
    serving_shops().into_iter().chain([(SHOP, answer)]).collect()
}

#[tokio::test(start_paused = true)]
async fn a_target_is_looked_up_live_by_its_name_in_the_namespace_of_the_command() {
    for (metadata, is_terminating) in [
        (json!({"name": "a", "uid": "shop"}), false),
        (json!({"name": "a", "uid": "shop", "deletionTimestamp": "2026-01-01T12:00:00Z"}), true),
    ] {
        let (target, asked) = look(shops_with(shop(&metadata))).await;
        let Some(Target::Served { kind: (kind, scope), object }) = target.unwrap() else { panic!() };
        assert_eq!(object, Some(TargetObject { uid: "shop".into(), is_terminating, created: None }));
        assert_eq!((&*kind.plural, scope), ("shops", Scope::Namespaced));
        assert_eq!(asked, [format!("GET {SHOPS}"), format!("GET {SHOP}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_target_is_missing_only_where_the_answer_is_about_its_name() {
    let (target, _) = look(shops_with(failure(404, "a"))).await;
    assert!(matches!(target.unwrap(), Some(Target::Served { object: None, .. })));
    let (target, _) = look(shops_with(failure(404, ""))).await;
    assert_eq!(target.unwrap(), Some(Target::NotServed), "its path is not known");
    let (target, _) = look(Answers::new()).await;
    assert_eq!(target.unwrap(), Some(Target::NotServed));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_nobody_could_look_up_is_none_that_is_missing() {
    for (answer, reason, is_stalled) in [
        (failure(403, "a"), "Forbidden", true),
        (failure(429, "a"), "LookUpFailed", false),
        (failure(500, "a"), "LookUpFailed", false),
        ((None, Value::Null), "LookUpFailed", false),
    ] {
        let (target, _) = look(shops_with(answer.clone())).await;
        let failure = Failure::from(target.unwrap_err());
        assert_eq!((failure.reason, failure.is_stalled), (reason, is_stalled), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_of_which_nothing_is_to_be_decided_costs_no_request() {
    let owner = json!({"apiVersion": "apps.example/v1", "kind": "Shop", "name": "a", "uid": "shop"});
    let bound = json!({"ownerReferences": [owner], "annotations": {"catena.dev/bound-to": "shop"}});
    let terminating = json!({"deletionTimestamp": "2026-01-01T12:00:00Z"});
    let failure = Failure::transient("Forbidden", "");
    for (metadata, backoffs) in [
        (bound, Backoffs::default()),
        (terminating, Backoffs::default()),
        (json!({}), Backoffs::of_everything(failure)),
    ] {
        let (observer, log) = observer(serving_shops());
        let seen = observer.observe(command(&json!({}), &metadata), backoffs).await.unwrap();
        assert_eq!((seen.target, log.take().len()), (None, 0), "{metadata}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reference_is_refreshed_only_where_its_version_is_not_served_and_without_a_look_at_its_target() {
    let version = |name: &str| json!({"groupVersion": format!("apps.example/{name}"), "version": name});
    let groups = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [{
        "name": "apps.example", "versions": [version("v1"), version("v2")], "preferredVersion": version("v2"),
    }]});
    let mut answers = serving_shops();
    let mut second = answers[SHOPS].clone();
    second.1["groupVersion"] = "apps.example/v2".into();
    answers.extend([("/apis/apps.example/v2", second), ("/apis", (Some(200), groups))]);
    for (named, refreshed, is_free) in [
        ("v0", Some("apps.example/v1"), false),
        // It is served, although nothing is watched in it.
        ("v2", None, false),
        ("v1", None, true),
        ("..", None, true),
    ] {
        let owner = json!({
            "apiVersion": format!("apps.example/{named}"), "kind": "Shop", "name": "a", "uid": "shop",
        });
        let bound = json!({"ownerReferences": [owner], "annotations": {"catena.dev/bound-to": "shop"}});
        let (observer, log) = observer(answers.clone());
        let seen = observer.observe(command(&json!({}), &bound), Backoffs::default()).await.unwrap();
        let version = seen.refreshed.as_ref().map(|owner| owner.api_version.as_str());
        let asked = asked(&log);
        assert_eq!((version, asked.is_empty()), (refreshed, is_free), "{named}: {asked:?}");
        assert_eq!((seen.target, asked.contains(&format!("GET {SHOP}"))), (None, false), "{named}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_label_is_compared_with_its_target_once() {
    let (observer, log) = observer(shops_with(shop(&json!({"name": "a", "uid": "shop"}))));
    let labelled = json!({"labels": {"catena.dev/target-uid": "shop"}});
    let labelled = command(&json!({"mode": "Label"}), &labelled);
    let first = observer.observe(labelled.clone(), Backoffs::default()).await.unwrap();
    assert!(!first.is_label_checked && first.target.is_some());
    drop(log.take());
    let second = observer.observe(labelled, Backoffs::default()).await.unwrap();
    assert!(second.is_label_checked && second.target.is_none() && log.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_command_waits_for_the_kind_of_its_target_until_it_is_gone_itself() {
    let (observer, _) = observer(Answers::new());
    observer.observe(command(&json!({}), &json!({})), Backoffs::default()).await.unwrap();
    assert_eq!(observer.waiting.kinds().len(), 1);
    observer.forget("command");
    assert!(observer.waiting.kinds().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_command_waits_for_a_kind_only_as_long_as_it_lacks_that_one() {
    let owner = json!({"apiVersion": "apps.example/v1", "kind": "Shop", "name": "a", "uid": "shop"});
    let bound = json!({"ownerReferences": [owner], "annotations": {"catena.dev/bound-to": "shop"}});
    let terminating = json!({"deletionTimestamp": "2026-01-01T12:00:00Z"});
    let none = json!({});
    let lost = json!({"target": {"name": "object.spec.target", "kinds": [
        {"group": "", "version": "v1", "resource": "pods", "kind": "Pod"},
    ]}});
    for (binding, metadata, kinds) in [
        (&none, &none, 1),
        (&none, &bound, 0),
        (&none, &terminating, 0),
        (&json!({"filter": "false"}), &none, 0),
        (&json!({"refuse": [{"when": "true", "message": "no"}]}), &none, 0),
        (&json!({"after": "false"}), &none, 0),
        (&lost, &none, 0),
    ] {
        let (observer, _) = observer(Answers::from([("/api/v1", (None, Value::Null))]));
        observer.observe(command(&none, &none), Backoffs::default()).await.unwrap();
        assert_eq!(observer.waiting.kinds().len(), 1);
        let seen = observer.observe(command(binding, metadata), Backoffs::default()).await;
        assert_eq!(seen.is_err(), *binding == lost);
        assert_eq!(observer.waiting.kinds().len(), kinds, "{binding} {metadata}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_labelled_command_does_not_wait_for_the_kind_of_its_target() {
    let (observer, _) = observer(Answers::new());
    let labelled = json!({"labels": {"catena.dev/target-uid": "shop"}});
    let labelled = command(&json!({"mode": "Label"}), &labelled);
    let seen = observer.observe(labelled, Backoffs::default()).await.unwrap();
    assert_eq!(seen.target, Some(Target::NotServed));
    assert!(observer.waiting.kinds().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_condition_is_reported_only_where_the_schema_keeps_those_of_others() {
    let fields = ["type", "status", "observedGeneration", "lastTransitionTime", "reason", "message"];
    let items = |fields: &[&str]| {
        let properties: BTreeMap<_, _> = fields.iter().map(|field| (field, json!({}))).collect();
        json!({ "properties": properties })
    };
    let keyed = json!({
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": items(&fields),
    });
    let with = |field: &str, value: Value| {
        let mut conditions = keyed.clone();
        conditions[field] = value;
        conditions
    };
    let open = json!({"x-kubernetes-preserve-unknown-fields": true});
    let status = json!({"status": {}});
    let reports = json!({"reportsBound": true});
    for (binding, version, subresources, conditions, can_report) in [
        (&reports, "v1", &status, keyed.clone(), true),
        (&reports, "v1", &status, with("items", open), true),
        (&reports, "v1", &status, with("items", json!({})), false),
        (&reports, "v1", &status, with("items", items(&fields[..5])), false),
        (&reports, "v1", &status, with("x-kubernetes-list-type", json!("atomic")), false),
        (&reports, "v1", &status, with("x-kubernetes-list-map-keys", json!(["reason"])), false),
        (&reports, "v1", &json!({}), keyed.clone(), false),
        (&reports, "v2", &status, keyed.clone(), false),
        (&json!({}), "v1", &status, keyed.clone(), false),
    ] {
        let schema = json!({"properties": {"status": {"properties": {"conditions": conditions}}}});
        let schema = json!({"openAPIV3Schema": schema});
        let served = json!({"name": version, "subresources": subresources, "schema": schema});
        let definition = json!({"metadata": {}, "spec": {"versions": [served]}});
        let mut answers = shops_with(shop(&json!({"name": "a", "uid": "shop"})));
        answers.insert(DEFINITION, (Some(200), definition.clone()));
        let (observer, _) = observer(answers);
        let seen = observer.observe(command(binding, &json!({})), Backoffs::default()).await.unwrap();
        assert_eq!(seen.can_report, Some(can_report), "{binding} {definition}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_schema_is_looked_up_once_for_each_watch_and_again_where_it_could_not_be_read() {
    let definition = json!({"metadata": {}, "spec": {"versions": []}});
    for (answer, can_report, lookups) in [
        ((Some(200), definition), Some(false), [1, 0, 0, 1]),
        (failure(403, ""), Some(false), [1, 0, 1, 1]),
        (failure(500, ""), None, [1, 0, 1, 1]),
    ] {
        let mut answers = shops_with(shop(&json!({"name": "a", "uid": "shop"})));
        answers.insert(DEFINITION, answer);
        let (observer, log) = observer(answers);
        let reports = json!({"reportsBound": true});
        let (first, of_another_watch) = (command(&reports, &json!({})), command(&reports, &json!({})));
        let seconds_before = [0, 9, 1, 0];
        let commands = [&first, &first, &first, &of_another_watch];
        for ((command, expected), seconds) in commands.into_iter().zip(lookups).zip(seconds_before) {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            let seen = observer.observe(command.clone(), Backoffs::default()).await.unwrap();
            assert_eq!(seen.can_report, can_report);
            let lookups = asked(&log).iter().filter(|asked| asked.ends_with(DEFINITION)).count();
            assert_eq!(lookups, expected, "{can_report:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_definition_is_looked_for_that_the_core_group_cannot_have() {
    let (observer, log) = observer(shops_with(shop(&json!({"name": "a", "uid": "shop"}))));
    let core = command(&json!({"reportsBound": true, "group": ""}), &json!({}));
    let seen = observer.observe(core, Backoffs::default()).await.unwrap();
    assert_eq!(seen.can_report, Some(false));
    assert_eq!(asked(&log), [format!("GET {SHOPS}"), format!("GET {SHOP}")]);
}
