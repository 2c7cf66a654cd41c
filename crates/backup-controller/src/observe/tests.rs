use catena_api::keys::{BACKUP_STATUS, FORCE_RELEASE};
use operator_kit::run::Triggers;
use operator_watch::Watches;
use serde_json::json;

use super::*;
use crate::{
    fixtures::{TEMPLATE, failed, settings, target, watched},
    mock_server::{Answer, DATE, Log, answering},
};

const WEB: &str = "/api/v1/namespaces/shop/configmaps/web";

/// An observer in a cluster with this object under the name `web`, and without backups.
fn observer(web: Option<Value>, memory: Memory) -> (Observer, Log) {
    observer_by(TEMPLATE, web, memory)
}

/// The same with another template.
fn observer_by(template: &str, web: Option<Value>, memory: Memory) -> (Observer, Log) {
    let (client, log) = answering(Some(DATE), move |sent| {
        let name = sent.uri.split('?').next().unwrap().rsplit('/').next().unwrap().to_owned();
        let absent = json!({"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": name}});
        match (sent.uri.split('?').next().unwrap(), &web) {
            // The answer about an object of a kind that is not served is no object.
            (WEB, Some(web)) if web.is_string() => Answer::Json(404, web.clone()),
            (WEB, Some(web)) => Answer::Json(200, web.clone()),
            _ => Answer::Json(404, absent),
        }
    });
    let namespaces = Namespaces::new(client.clone(), Watches::default(), Triggers::default());
    let settings = SettingsHandle::fixed(settings(template, "backups"));
    let backups = BackupWatches::new(client.clone(), Watches::default(), Triggers::default());
    (Observer::new(client, settings, namespaces, backups, memory), log)
}

async fn observe(observer: &Observer, backoffs: Backoffs) -> Option<Held> {
    let settings = settings(TEMPLATE, "backups");
    observer.observe(watched(&settings, &target("shop")), backoffs).await.unwrap().unwrap().0.held
}

#[tokio::test]
async fn of_an_object_that_is_not_the_one_that_was_seen_or_is_not_held_nothing_more_is_known() {
    let changed = |field: &str, value: Value| {
        let mut web = target("shop");
        web["metadata"][field] = value;
        Some(web)
    };
    for web in [
        None,
        changed("uid", json!("v")),
        changed("deletionTimestamp", Value::Null),
        changed("finalizers", json!(["a.example/x"])),
    ] {
        let (observer, log) = observer(web.clone(), Memory::default());
        assert!(observe(&observer, Backoffs::default()).await.is_none(), "{web:?}");
        assert_eq!(log.take().len(), 1, "no backup of it is looked up: {web:?}");
    }
}

#[tokio::test]
async fn an_object_of_a_kind_that_is_no_longer_served_is_not_taken_for_gone() {
    let (observer, _) = observer(Some(json!("404 page not found")), Memory::default());
    let settings = settings(TEMPLATE, "backups");
    let failed = observer.observe(watched(&settings, &target("shop")), Backoffs::default()).await;
    let failure = failed.err().unwrap();
    assert_eq!((failure.reason, failure.is_stalled), ("KindNotServed", false));
    assert!(failure.message.contains("ConfigMap \"web\""), "{failure}");
}

#[tokio::test]
async fn of_an_object_that_somebody_lets_go_no_backup_is_looked_up() {
    let mut web = target("shop");
    let uid = "8f2a6c1e-0000-4000-8000-00000000000a";
    web["metadata"]["uid"] = uid.into();
    web["metadata"]["annotations"] = json!({FORCE_RELEASE: format!("{uid} dumped by hand")});
    let (observer, log) = observer(Some(web.clone()), Memory::default());
    let settings = settings(TEMPLATE, "backups");
    let seen = watched(&settings, &web);
    let held = observer.observe(seen, Backoffs::default()).await.unwrap().unwrap().0.held.unwrap();
    assert_eq!((held.force_release, held.situation), (ForceRelease::Granted("dumped by hand".into()), None));
    assert_eq!(log.take().len(), 1);
}

/// A policy on annotations may refuse or strip it.
#[tokio::test(start_paused = true)]
async fn a_status_that_the_object_does_not_show_holds_and_is_told_again_after_a_while() {
    let memory = Memory::default();
    memory.note_told("u", failed(1));
    let (observer, _) = observer(Some(target("shop")), memory.clone());
    let held = observe(&observer, Backoffs::default()).await.unwrap();
    assert_eq!((held.status, held.tell_again), (Some(failed(1)), Some(UNSHOWN_STATUS_DELAY)));
    tokio::time::sleep(UNSHOWN_STATUS_DELAY).await;
    let held = observe(&observer, Backoffs::default()).await.unwrap();
    assert_eq!(held.tell_again, Some(Duration::ZERO));

    let mut shown = target("shop");
    shown["metadata"]["annotations"] = json!({BACKUP_STATUS: failed(1).text()});
    let (observer, _) = self::observer(Some(shown), memory);
    assert_eq!(observe(&observer, Backoffs::default()).await.unwrap().tell_again, None);
}

/// Otherwise another entry might release it without its backup.
#[tokio::test]
async fn the_entry_that_was_told_stays_even_if_the_object_does_not_show_it() {
    let kinds = |selector: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": "job",
               "selector": {"matchLabels": {"tier": selector}}})
    };
    let mut file = json!({
        "kinds": {"gold": kinds("gold"), "silver": kinds("silver")},
        "backups": {"job": {
            "apiVersion": "batch/v1", "kind": "Job", "resource": "jobs", "namespace": "backups", "template": TEMPLATE,
            "succeeded": "false",
        }},
    });
    file["kinds"]["silver"]["onFailure"] = "Release".into();
    let two: Settings = serde_json::from_value(file).unwrap();
    let entries = &two.by_resource["configmaps"];
    let silver = entries.named("silver").unwrap().clone();
    let id = |status| entries.recorded(status, silver.clone()).id.clone();
    assert_eq!(
        (id(Some(&BackupStatus { entry: "gold".into(), ..failed(1) })), id(None)),
        ("gold".into(), "silver".into())
    );
}

#[tokio::test]
async fn a_living_object_whose_backup_would_be_too_large_is_told_once_after_it_got_the_finalizer() {
    let template =
        "{apiVersion: batch/v1, kind: Job, metadata: {name: {{ suffix }}}, spec: {text: {{ manifest }}}}";
    for (size, is_too_large) in [(1, false), (200 << 10, false), (2 << 20, true)] {
        let mut web = target("shop");
        web["metadata"]["deletionTimestamp"] = Value::Null;
        web["data"]["a"] = "x".repeat(size).into();
        let memory = Memory::default();
        memory.protected("u");
        let (observer, _) = observer_by(template, Some(web.clone()), memory);
        let settings = settings(template, "backups");
        for is_first in [true, false] {
            let seen = watched(&settings, &web);
            let (found, _) = observer.observe(seen, Backoffs::default()).await.unwrap().unwrap();
            assert_eq!(found.excess.is_some(), is_too_large && is_first, "{size}");
        }
    }
}

#[tokio::test]
async fn what_lives_is_not_read() {
    let mut web = target("shop");
    web["metadata"]["deletionTimestamp"] = Value::Null;
    let settings = settings(TEMPLATE, "backups");
    let (observer, log) = observer(None, Memory::default());
    let (living, _) = observer.observe(watched(&settings, &web), Backoffs::default()).await.unwrap().unwrap();
    assert_eq!((living.is_selected, living.held.is_none(), log.take().len()), (true, true, 0));
}
