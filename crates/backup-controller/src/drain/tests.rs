use std::sync::Arc;

use json_patch::Patch;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use operator_kit::report::Events;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::{
    fixtures::{MANAGER, target},
    mock_server::{self, Answer, DATE, Log, Sent, answering},
};

/// The held objects of a server, each with the code that its first release is answered with; 0 is no answer.
type Left = Arc<Mutex<BTreeMap<String, (Value, Option<u16>)>>>;

/// A server with held `ConfigMaps` of these names, which refuses to list `Secrets`.
fn server(names: &[String], refused: impl Fn(&str) -> Option<u16>) -> (Client, Log, Left) {
    let objects = names.iter().map(|name| {
        let mut object = target("shop");
        object["metadata"]["name"] = name.as_str().into();
        (name.clone(), (object, refused(name)))
    });
    let objects: BTreeMap<String, (Value, Option<u16>)> = objects.collect();
    let left = Arc::new(Mutex::new(objects));
    let state = left.clone();
    let (client, log) = answering(None, move |sent: &Sent| {
        let mut left = state.lock();
        match sent.verb.as_str() {
            "GET" if sent.uri.contains("/secrets") => Answer::Refusal(500, "InternalError"),
            "GET" => {
                let items: Vec<_> = left.values().map(|(object, _)| object).collect();
                Answer::Object(json!({"metadata": {}, "items": items}))
            }
            "AMEND" => {
                let name = sent.uri.split('?').next().unwrap().rsplit('/').next().unwrap();
                match left.get_mut(name).and_then(|(_, refused)| refused.take()) {
                    // It is gone nevertheless.
                    Some(code @ (0 | 404 | 500..)) => {
                        left.remove(name);
                        if code == 0 { Answer::Silence } else { Answer::Refusal(code, "") }
                    }
                    Some(code) => Answer::Refusal(code, "Conflict"),
                    None => left
                        .remove(name)
                        .map_or(Answer::Refusal(404, "NotFound"), |(object, _)| Answer::Object(object)),
                }
            }
            _ => Answer::Done,
        }
    });
    (client, log, left)
}

fn drain<'d>(client: &'d Client, writer: &'d Writer, until: Instant) -> Drain<'d> {
    Drain { client, writer, until, request_timeout: REQUEST_TIMEOUT, held_objects: HeldObjects::Release }
}

/// Drains kinds once more after each failure, as the Job does.
async fn drain_all(client: &Client, kinds: &[ApiResource]) -> anyhow::Result<ExitCode> {
    let writer = Writer::over(client.clone(), MANAGER);
    let mut report = Report::new(Events::over(client.clone(), MANAGER), Duration::from_secs(60));
    let mut outcome = Ok(ExitCode::FAILURE);
    for _ in 0..2 {
        let until = Instant::now() + Duration::from_secs(180);
        outcome = drain(client, &writer, until).until_empty(&mut report, kinds).await;
    }
    report.end().await;
    outcome
}

/// Drains held objects with these names, over a server that refuses the first release of some by a code.
async fn drained(names: &[String], refused: impl Fn(&str) -> Option<u16>) -> Log {
    let (client, log, left) = server(names, refused);
    drain_all(&client, &[ApiResource::erase::<ConfigMap>(&())]).await.unwrap();
    assert!(left.lock().is_empty());
    log
}

/// The names of the objects that Events are about.
fn told(log: &Log) -> Vec<String> {
    let events = log.take().into_iter().filter(|sent| sent.body["reason"] == "ReleasedByUninstall");
    events.map(|sent| sent.body["regarding"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn each_object_that_is_released_without_a_backup_has_one_event_by_the_end() {
    let mut names: Vec<String> = (0..1200).map(|number| format!("held-{number}")).collect();
    names.sort();
    let mut told = told(&drained(&names, |_| None).await);
    told.sort();
    assert_eq!(told.len(), names.len());
    assert_eq!(told, names);
}

#[tokio::test(start_paused = true)]
async fn a_refused_release_costs_no_other_its_event() {
    let mut names: Vec<String> = (0..20).map(|number| format!("held-{number}")).collect();
    names.sort();
    let mut told = told(&drained(&names, |name| (name == "held-0").then_some(403)).await);
    told.sort();
    assert_eq!(told, names);
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_is_lost_or_says_nothing_of_its_effect_is_told() {
    for code in [0, 500, 502, 504] {
        assert_eq!(told(&drained(&["web".to_owned()], |_| Some(code)).await), ["web"], "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_release_begins_after_the_time_is_up_and_each_that_has_begun_is_told() {
    let names: Vec<String> = (0..40).map(|number| format!("held-{number}")).collect();
    let (client, log, left) = server(&names, |_| Some(0));
    let writer = Writer::over(client.clone(), MANAGER);
    let mut report = Report::new(Events::over(client.clone(), MANAGER), Duration::from_secs(60));
    let until = Instant::now() + Duration::from_secs(10);
    drain(&client, &writer, until)
        .until_empty(&mut report, &[ApiResource::erase::<ConfigMap>(&())])
        .await
        .unwrap_err();
    report.end().await;
    assert_eq!(
        (names.len() - left.lock().len(), told(&log).len()),
        (MAX_CONCURRENT_RELEASES, MAX_CONCURRENT_RELEASES)
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_fails_keeps_no_other_from_being_drained() {
    let (client, log, left) = server(&["web".to_owned()], |_| None);
    let kinds = [ApiResource::erase::<Secret>(&()), ApiResource::erase::<ConfigMap>(&())];
    let error = drain_all(&client, &kinds).await.unwrap_err();
    assert!(error.to_string().contains("secrets"), "{error:#}");
    assert!(left.lock().is_empty());
    assert_eq!(told(&log), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_this_write_did_not_release_is_not_told() {
    let names = ["web".to_owned()];
    assert_eq!(
        told(&drained(&names, |_| Some(409)).await),
        ["web"],
        "it was changed, and released in the next round"
    );
    assert!(told(&drained(&names, |_| Some(404)).await).is_empty(), "somebody else released it");
}

#[tokio::test]
async fn a_pod_that_starts_late_or_again_has_only_the_rest_of_the_time_of_its_job() {
    let client = mock_server::server(Some(DATE), |path| match path {
        "/apis/batch/v1/namespaces/catena-system/jobs/drain" => {
            (200, json!({"metadata": {"name": "drain", "creationTimestamp": "2026-06-01T11:58:20Z"}}))
        }
        _ => (404, json!({"kind": "Status", "reason": "NotFound", "code": 404})),
    });
    assert_eq!(age(&client, "catena-system", "drain").await.unwrap(), Duration::from_secs(100));
    assert_eq!(age(&client, "catena-system", "gone").await.unwrap(), Duration::ZERO);
}

#[test]
fn what_is_deleted_while_others_are_drained_waits_for_the_next_round() {
    for held_objects in [HeldObjects::Release, HeldObjects::Refuse] {
        let mut living = target("shop");
        living["metadata"]["deletionTimestamp"] = Value::Null;
        let listed: Found = serde_json::from_value(living.clone()).unwrap();
        let patch = Patch(held_objects.patch(&listed).unwrap());
        let mut deleted = living.clone();
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(json_patch::patch(&mut living, &patch).is_ok());
        assert!(json_patch::patch(&mut deleted.clone(), &patch).is_err(), "nobody would be told of it");
        let held: Found = serde_json::from_value(deleted.clone()).unwrap();
        let patch = Patch(held_objects.patch(&held).unwrap());
        assert_eq!(json_patch::patch(&mut deleted, &patch).is_ok(), held_objects == HeldObjects::Release);
    }
}

#[test]
fn what_is_wrong_with_backups_and_selectors_keeps_nothing_from_being_drained() {
    let settings: Settings = serde_saphyr::from_str(
        "{kinds: {dbs: {apiVersion: x.dev/v1, kind: Db, resource: dbs, backup: lost, deadline: soon, selector: {}}}, backups: 7}",
    )
    .unwrap();
    assert_eq!(settings.validate(), Ok(()));
    assert_eq!(settings.kinds["dbs"].resource().unwrap().plural, "dbs");
}

#[test]
fn the_page_shows_the_settings_that_a_drain_without_the_release_needs() {
    let page = include_str!("../../../../docs/protect-a-kind.md");
    let (_, uninstall) = page.split_once("## Uninstall").unwrap();
    let (_, block) = uninstall.split_once("```yaml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let settings: Settings = serde_saphyr::from_str(block).unwrap();
    assert_eq!(settings.validate(), Ok(()));
    assert_eq!(settings.kinds["configmaps"].resource().unwrap(), ApiResource::erase::<ConfigMap>(&()));
}

#[test]
fn a_kind_with_several_entries_is_drained_once() {
    let entry = |version: &str| json!({"apiVersion": version, "kind": "ConfigMap", "resource": "configmaps"});
    let settings = json!({"kinds": {"a": entry("v1"), "b": entry("v1"), "c": entry("x.dev/v1")}});
    let settings: Settings = serde_json::from_value(settings).unwrap();
    let groups: Vec<_> = settings.resources().into_iter().map(|kind| kind.group).collect();
    assert_eq!(groups, ["", "x.dev"]);
}
