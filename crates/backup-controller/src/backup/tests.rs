use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use catena_api::keys::{BACKUP_OF, BACKUP_TARGET};
use kube::{Client, discovery::ApiResource};
use operator_kit::{render::short_digest, watch::ServedKinds};
use serde_json::json;

use super::{
    judge::{Doubt, doubt, judge},
    render::render,
    survey::LOOKUPS,
    *,
};
use crate::{
    live::tests::{DATE, server},
    metadata,
    settings::{LAST_ATTEMPT, Settings},
};

fn settings(template: &str, namespace: &str) -> Settings {
    let settings = json!({
        "kinds": {"maps": {"apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": "job"}},
        "backups": {"job": {
            "apiVersion": "batch/v1", "kind": "Job", "resource": "jobs", "namespace": namespace, "template": template,
            "succeeded": "object.status.succeeded == 1", "failed": "object.status.failed == 1",
        }},
    });
    serde_json::from_value(settings).unwrap()
}

fn target(namespace: &str) -> Value {
    json!({
        "kind": "ConfigMap", "data": {"a": "\"b: {{ c }}"},
        "metadata": {
            "name": "web", "namespace": namespace, "uid": "u", "deletionTimestamp": "2026-06-01T12:00:30Z",
            "deletionGracePeriodSeconds": 30,
        },
    })
}

const TEMPLATE: &str = "{apiVersion: batch/v1, kind: Job, metadata: {name: {{ name ~ '-' ~ suffix }}}, spec: {text: {{ manifest }}, a: {{ object.data.a }}}}";

/// What the server makes of a backup.
fn created(settings: &Settings, target: &Value, attempt: u32) -> Value {
    let mut backup = render(&settings.templates, &settings.kinds["maps"], target, attempt).unwrap();
    backup["metadata"]["creationTimestamp"] = json!("2026-06-01T12:00:00Z");
    let mut annotations = json!({});
    annotations[format!("f:{BACKUP_TARGET}")] = json!({});
    backup["metadata"]["managedFields"] = json!([
        {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:status": {}}},
        {"manager": "backup-controller", "operation": "Update", "fieldsV1": {"f:metadata": {"f:annotations": annotations}}},
    ]);
    backup
}

fn doubted(found: &Value, settings: &Settings, target: &Value, attempt: u32) -> Option<Doubt> {
    doubt(found, &Target::of(&settings.kinds["maps"], target, attempt), target)
}

#[test]
fn what_is_not_known_is_still_running_and_what_is_both_failed() {
    let backup = settings(TEMPLATE, "").kinds["maps"].backup.clone();
    let verdict = |object: Value| judge(&backup, &object, &json!({}));
    assert_eq!(verdict(json!({"status": {"succeeded": 1, "failed": 0}})), Verdict::Succeeded);
    assert_eq!(verdict(json!({"status": {"succeeded": 1}})), Verdict::Succeeded);
    assert_eq!(verdict(json!({"status": {"failed": 1, "succeeded": 1}})), Verdict::Failed);
    assert_eq!(verdict(json!({"status": {"failed": 0, "succeeded": 0}})), Verdict::Running(None));
    for unknown in [json!({}), json!({"status": {}}), json!({"status": {"succeeded": "yes"}})] {
        assert!(matches!(verdict(unknown.clone()), Verdict::Running(_)), "{unknown}");
    }
    for time in ["2026-01-01T00:00:00Z", "someday"] {
        let going = json!({"metadata": {"deletionTimestamp": time}, "status": {"succeeded": 1, "failed": 0}});
        assert_eq!(verdict(going), Verdict::Going);
    }
}

#[test]
fn of_a_field_that_is_not_there_yet_nobody_is_told_to_set_it() {
    let backup = settings(TEMPLATE, "").kinds["maps"].backup.clone();
    let Verdict::Running(Some(note)) = judge(&backup, &json!({}), &json!({})) else {
        panic!("nothing is told")
    };
    assert_eq!(note, "there is no field status yet, which backups.job.succeeded reads");
}

#[test]
fn each_try_of_each_object_by_each_policy_has_a_name_of_its_own_that_is_always_the_same() {
    let (mine, other_template) = (settings(TEMPLATE, ""), settings(&format!("{TEMPLATE} # more"), ""));
    let name = |settings: &Settings, target: &Value, attempt| {
        let backup = render(&settings.templates, &settings.kinds["maps"], target, attempt).unwrap();
        metadata::text(&backup, "name").to_owned()
    };
    let mut other = target("shop");
    other["metadata"]["uid"] = "v".into();
    let one = name(&mine, &target("shop"), 1);
    assert_eq!(name(&mine, &target("shop"), 1), one);
    assert_ne!(name(&mine, &target("shop"), 2), one);
    assert_ne!(name(&mine, &other, 1), one);
    assert_ne!(name(&other_template, &target("shop"), 1), one);
}

#[test]
fn values_of_the_object_stay_values() {
    let settings = settings(TEMPLATE, "backups");
    let backup = created(&settings, &target("shop"), 3);
    assert_eq!(backup["spec"]["a"], "\"b: {{ c }}");
    assert_eq!(backup["metadata"]["namespace"], "backups");
    let manifest: Value = serde_json::from_str(backup["spec"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(manifest["data"], target("shop")["data"]);
}

#[test]
fn a_backup_says_which_object_try_and_policy_it_is_of() {
    let (settings, target) = (settings(TEMPLATE, ""), target("shop"));
    let backup = created(&settings, &target, 3);
    assert_eq!(doubted(&backup, &settings, &target, 3), None);
    assert_eq!(doubted(&backup, &settings, &target, 2), Some(Doubt::NotOfIt));
    let mut other = target.clone();
    other["metadata"]["uid"] = "v".into();
    assert_eq!(doubted(&backup, &settings, &other, 3), Some(Doubt::NotOfIt));
    let other_policy = self::settings(&format!("{TEMPLATE} # more"), "");
    assert_eq!(doubted(&backup, &other_policy, &target, 3), Some(Doubt::NotOfIt));
    for missing in [&["labels", BACKUP_OF], &["annotations", BACKUP_TARGET]] {
        let mut backup = backup.clone();
        backup["metadata"][missing[0]].as_object_mut().unwrap().remove(missing[1]);
        assert_eq!(doubted(&backup, &settings, &target, 3), Some(Doubt::NotOfIt), "{missing:?}");
    }
}

#[test]
fn what_was_there_before_the_deletion_or_is_by_somebody_else_proves_nothing() {
    let (settings, target) = (settings(TEMPLATE, ""), target("shop"));
    let doubted_with = |field: &str, value: Value| {
        let mut backup = created(&settings, &target, 1);
        backup["metadata"][field] = value;
        doubted(&backup, &settings, &target, 1)
    };
    assert_eq!(doubted_with("creationTimestamp", json!("2026-06-01T11:59:00Z")), Some(Doubt::TooOld));
    assert_eq!(doubted_with("creationTimestamp", Value::Null), Some(Doubt::TooOld));
    // The clocks of two API servers.
    assert_eq!(doubted_with("creationTimestamp", json!("2026-06-01T11:59:55Z")), None);
    assert_eq!(doubted_with("managedFields", json!([])), Some(Doubt::NotOurs));
    let of_others = created(&settings, &target, 1)["metadata"]["managedFields"].to_string();
    let of_others = of_others.replace("backup-controller", "kubectl-create");
    assert_eq!(
        doubted_with("managedFields", serde_json::from_str(&of_others).unwrap()),
        Some(Doubt::NotOurs)
    );
}

#[test]
fn what_goes_with_the_object_is_no_backup_of_it() {
    let (settings, target) = (settings(TEMPLATE, ""), target("shop"));
    let mut backup = created(&settings, &target, 1);
    backup["metadata"]["ownerReferences"] = json!([{"uid": "somebody"}]);
    assert_eq!(doubted(&backup, &settings, &target, 1), None);
    backup["metadata"]["ownerReferences"] = json!([{"uid": "somebody"}, {"uid": "u"}]);
    assert_eq!(doubted(&backup, &settings, &target, 1), Some(Doubt::Owned));
}

#[test]
fn a_template_that_cannot_work_is_told() {
    let problem = |template: &str, of: &str| {
        let settings = settings(template, "");
        render(&settings.templates, &settings.kinds["maps"], &target(of), 1).unwrap_err().reason()
    };
    let named = |name: &str| format!("{{apiVersion: batch/v1, kind: Job, metadata: {{{name}}}}}");
    assert_eq!(problem(&named("name: {{ name }}"), "shop"), "BackupNameNotUnique");
    assert_eq!(problem(&named("name: {{ suffix }}, namespace: other"), "shop"), "BackupInOtherNamespace");
    assert_eq!(problem(&named("name: {{ suffix }}"), ""), "BackupWithoutNamespace");
    let owned = "name: {{ suffix }}, ownerReferences: [{uid: {{ uid }}}]";
    assert_eq!(problem(&named(owned), "shop"), "BackupHasOwner");
}

/// What stands in the cluster, by name, and how many look-ups there were.
fn cluster(backups: Vec<Value>) -> (Client, Arc<AtomicU32>) {
    let backups: HashMap<String, Value> =
        backups.into_iter().map(|backup| (metadata::text(&backup, "name").to_owned(), backup)).collect();
    let lookups = Arc::new(AtomicU32::new(0));
    let counted = lookups.clone();
    let client = server(Some(DATE), move |path| {
        counted.fetch_add(1, Ordering::Relaxed);
        let name = path.rsplit('/').next().unwrap_or_default();
        let absent = json!({"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": name}});
        backups.get(name).map_or((404, absent), |backup| (200, backup.clone()))
    });
    (client, lookups)
}

async fn survey(client: &Client, settings: &Settings, first: u32, former: Option<u32>) -> Situation {
    let survey = Survey {
        client,
        served_kinds: &ServedKinds::new(client.clone()),
        templates: &settings.templates,
        kind: &settings.kinds["maps"],
        target: &target("shop"),
        now: "2026-06-01T12:00:30Z".parse().unwrap(),
    };
    survey.situation(first, former).await.unwrap()
}

/// The situation of an object, beginning with a try, where each of these tries failed, and how many were looked up.
async fn situation(tries: impl Iterator<Item = u32>, first: u32) -> (Situation, u32) {
    let settings = settings(TEMPLATE, "backups");
    let failed = |attempt| {
        let mut backup = created(&settings, &target("shop"), attempt);
        backup["status"] = json!({"failed": 1});
        backup
    };
    let (client, lookups) = cluster(tries.map(failed).collect());
    let situation = survey(&client, &settings, first, None).await;
    (situation, lookups.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_backup_of_an_earlier_version_is_waited_for_as_long_as_it_runs_and_has_time() {
    let settings = settings(TEMPLATE, "backups");
    let stands = async |change: fn(&mut Value)| {
        let suffix = short_digest(&["u", "1"]);
        let mut backup = created(&settings, &target("shop"), 1);
        let mut about: Value =
            serde_json::from_str(backup["metadata"]["annotations"][BACKUP_TARGET].as_str().unwrap()).unwrap();
        about.as_object_mut().unwrap().remove("policy");
        backup["metadata"]["name"] = format!("web-{suffix}").into();
        backup["metadata"]["annotations"][BACKUP_TARGET] = about.to_string().into();
        change(&mut backup);
        let (client, _) = cluster(vec![backup]);
        survey(&client, &settings, 1, Some(1)).await
    };
    let runs = stands(|_| {}).await;
    assert!(
        matches!(&runs, Situation::Former { last } if last.title.starts_with("Job backups/web-")),
        "{runs:?}"
    );
    let changes: [fn(&mut Value); 4] = [
        |backup| backup["status"] = json!({"succeeded": 1, "failed": 0}),
        |backup| backup["status"] = json!({"failed": 1}),
        |backup| backup["metadata"]["creationTimestamp"] = json!("2026-06-01T10:00:00Z"),
        |backup| backup["metadata"]["labels"][BACKUP_OF] = json!("v"),
    ];
    for change in changes {
        let ended = stands(change).await;
        assert!(matches!(ended, Situation::Absent { .. }), "{ended:?}");
    }
}

#[tokio::test]
async fn the_last_of_many_failed_tries_is_found_some_at_a_time() {
    let mut first = 1;
    for expected in [32, 63, 94] {
        let (found, lookups) = situation(1..=100, first).await;
        let Situation::Unfinished { last } = found else { panic!("{found:?}") };
        assert_eq!((last.attempt, lookups), (expected, LOOKUPS));
        first = last.attempt;
    }
    let (found, _) = situation(1..=100, first).await;
    assert!(matches!(&found, Situation::Failed { last, .. } if last.attempt == 100), "{found:?}");
}

#[tokio::test]
async fn tries_come_to_an_end_whatever_number_they_begin_with() {
    for first in [LAST_ATTEMPT, u32::MAX] {
        let (found, lookups) = situation([LAST_ATTEMPT].into_iter(), first).await;
        assert_eq!(found, Situation::Unusable(Unusable::Exhausted { tries: LAST_ATTEMPT }));
        assert_eq!(lookups, 1);
    }
}

/// What stands in a cluster that serves Jobs in v2 only, by name.
fn upgraded(backup: Option<Value>) -> Client {
    server(Some(DATE), move |path| {
        let version = json!({"groupVersion": "batch/v2", "version": "v2"});
        let jobs =
            json!({"name": "jobs", "singularName": "", "namespaced": true, "kind": "Job", "verbs": []});
        let name = path.rsplit('/').next().unwrap_or_default();
        match (path, &backup) {
            ("/apis", _) => (
                200,
                json!({"groups": [
                    {"name": "batch", "versions": [version], "preferredVersion": version},
                ]}),
            ),
            ("/apis/batch/v2", _) => (200, json!({"groupVersion": "batch/v2", "resources": [jobs]})),
            (path, Some(backup)) if path.contains("/v2/") && metadata::text(backup, "name") == name => {
                (200, backup.clone())
            }
            (path, _) if path.contains("/v2/") => (
                404,
                json!({"status": "Failure", "reason": "NotFound", "code": 404, "details": {"name": name}}),
            ),
            _ => (404, json!({"status": "Failure", "reason": "NotFound", "code": 404, "details": {}})),
        }
    })
}

#[tokio::test]
async fn a_backup_is_found_and_made_in_the_version_that_is_served() {
    let settings = settings(TEMPLATE, "backups");
    let mut done = created(&settings, &target("shop"), 1);
    done["status"] = json!({"succeeded": 1, "failed": 0});
    let found = survey(&upgraded(Some(done)), &settings, 1, None).await;
    assert!(matches!(&found, Situation::There { verdict: Verdict::Succeeded, .. }), "{found:?}");

    let Situation::Absent { backup } = survey(&upgraded(None), &settings, 1, None).await else {
        panic!("it is there")
    };
    assert_eq!(backup["apiVersion"], "batch/v2");
    let resource = written_as(&settings.kinds["maps"].backup, &backup);
    assert_eq!((resource.api_version.as_str(), resource.plural.as_str()), ("batch/v2", "jobs"));
}

#[tokio::test]
async fn a_create_in_a_version_that_is_not_served_is_no_refusal_while_another_one_is() {
    let settings = settings(TEMPLATE, "backups");
    let kind = &settings.kinds["maps"].backup;
    let backup = created(&settings, &target("shop"), 1);
    let asked = async |client: Client, tried: &ApiResource| {
        instead(&client, &ServedKinds::new(client.clone()), kind, tried, &backup).await
    };
    let other = async |client: Client, tried: &ApiResource| {
        asked(client, tried).await.unwrap().map(|other| other.api_version)
    };
    let lost = server(None, |_| (404, json!({"status": "Failure", "reason": "NotFound", "code": 404})));
    assert_eq!(other(upgraded(None), &kind.resource).await.as_deref(), Some("batch/v2"));
    let v2 = written_as(kind, &json!({"apiVersion": "batch/v2"}));
    assert_eq!(other(upgraded(None), &v2).await, None, "the namespace is missing");
    assert_eq!(other(lost, &kind.resource).await, None, "no version is served");
    let silent = server(None, |_| (503, json!({"status": "Failure", "code": 503})));
    // What is listed follows what is served, and may be behind.
    let behind = server(Some(DATE), |path| {
        let job = json!({"name": "jobs", "singularName": "", "namespaced": true, "kind": "Job", "verbs": []});
        match path {
            "/apis/batch/v1" => (200, json!({"groupVersion": "batch/v1", "resources": [job]})),
            _ => (404, json!({"status": "Failure", "reason": "NotFound", "code": 404, "details": {}})),
        }
    });
    for in_doubt in [silent, behind] {
        let asked = asked(in_doubt, &kind.resource).await;
        assert!(asked.is_err(), "in doubt it is held: {asked:?}");
    }
}
