use catena_api::keys::{BACKUP_OF, BACKUP_TARGET};
use serde_json::json;

use super::{judge::Doubt, *};
use crate::{
    fixtures::{self, created, ended, settings},
    settings::Settings,
};

fn target(namespace: &str) -> Value {
    let mut target = fixtures::target(namespace);
    target["data"]["a"] = "\"b: {{ c }}".into();
    target
}

const TEMPLATE: &str = "{apiVersion: batch/v1, kind: Job, metadata: {name: {{ name ~ '-' ~ suffix }}}, spec: {text: {{ manifest }}, a: {{ object.data.a }}}}";

fn doubted(found: &Value, settings: &Settings, target: &Value, attempt: u32) -> Option<Doubt> {
    doubt(found, &Target::of(&settings.kinds["maps"], target, attempt), target)
}

/// A backup of this kind that is judged by the first expression, and by the second one if it fails.
fn judged_by(api_version: &str, kind: &str, succeeded: &str, failed: &str) -> Settings {
    let settings = json!({
        "kinds": {"maps": {"apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": "it"}},
        "backups": {"it": {
            "apiVersion": api_version, "kind": kind, "resource": "its", "template": TEMPLATE,
            "succeeded": succeeded, "failed": failed,
        }},
    });
    serde_json::from_value(settings).unwrap()
}

#[test]
fn what_is_not_known_is_still_running_and_what_is_both_failed() {
    let settings =
        judged_by("x.dev/v1", "Dump", "object.status.done == true", "object.status.broken == true");
    let verdict = |object: Value| judge(&settings.kinds["maps"].backup, &object, &json!({}));
    assert_eq!(verdict(json!({"status": {"done": true, "broken": false}})), Verdict::Succeeded);
    assert_eq!(verdict(json!({"status": {"done": true}})), Verdict::Succeeded);
    assert_eq!(verdict(json!({"status": {"broken": true, "done": true}})), Verdict::Failed);
    assert_eq!(verdict(json!({"status": {"broken": false, "done": false}})), Verdict::Running(None));
    for unknown in [json!({}), json!({"status": {}}), json!({"status": {"done": "yes"}})] {
        assert!(matches!(verdict(unknown.clone()), Verdict::Running(_)), "{unknown}");
    }
    let failed_and_going =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"broken": true}});
    assert_eq!(verdict(failed_and_going), Verdict::Failed);
    for time in ["2026-01-01T00:00:00Z", "someday"] {
        let going =
            json!({"metadata": {"deletionTimestamp": time}, "status": {"done": true, "broken": false}});
        assert_eq!(verdict(going), Verdict::Going);
    }
}

#[test]
fn a_quoted_field_is_read() {
    let settings = judged_by("x.dev/v1", "Dump", "has(object.status.`is-done`)", "object.status.`is-broken`");
    let verdict = |object: Value| judge(&settings.kinds["maps"].backup, &object, &json!({}));
    assert_eq!(verdict(json!({"status": {"is-done": true}})), Verdict::Succeeded);
    assert_eq!(verdict(json!({"status": {"is-done": true, "is-broken": true}})), Verdict::Failed);
    assert_eq!(verdict(json!({"status": {"is-broken": false}})), Verdict::Running(None));
}

/// After its time to live, a Job is deleted in the foreground, so that it is terminating for a moment.
#[test]
fn a_job_that_ended_well_proves_its_backup_also_while_it_is_deleted_and_no_other_object_does() {
    let going = |status| json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": status});
    let verdict = |settings: &Settings, status: Value| {
        judge(&settings.kinds["maps"].backup, &going(status), &json!({}))
    };
    let jobs = settings(TEMPLATE, "");
    assert_eq!(verdict(&jobs, ended("Complete")), Verdict::Succeeded);
    assert_eq!(verdict(&jobs, ended("Failed")), Verdict::Failed);
    assert_eq!(verdict(&jobs, json!({})), Verdict::Going);
    assert_eq!(verdict(&judged_by("v1", "Secret", "true", "false"), json!({})), Verdict::Going);
}

#[test]
fn of_a_field_that_is_not_there_yet_nobody_is_told_to_set_it() {
    let settings = judged_by("x.dev/v1", "Dump", "object.status.done == true", "false");
    let Verdict::Running(Some(note)) = judge(&settings.kinds["maps"].backup, &json!({}), &json!({})) else {
        panic!("nothing is told")
    };
    assert_eq!(note, "the field status, which backups.it.succeeded reads, is not set yet");
    // It never gets a value by waiting.
    let settings = judged_by("x.dev/v1", "Dump", "object.size > 'x'", "false");
    let verdict = judge(&settings.kinds["maps"].backup, &json!({"size": 1}), &json!({}));
    assert!(matches!(verdict, Verdict::Unclear(_)), "{verdict:?}");
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
        render(&settings.templates, &settings.kinds["maps"], &target(of), 1).unwrap_err().reason
    };
    let named = |name: &str| format!("{{apiVersion: batch/v1, kind: Job, metadata: {{{name}}}}}");
    assert_eq!(problem(&named("name: {{ name }}"), "shop"), "BackupNameNotUnique");
    assert_eq!(problem(&named("name: {{ suffix }}, namespace: other"), "shop"), "BackupInOtherNamespace");
    assert_eq!(problem(&named("name: {{ suffix }}"), ""), "BackupWithoutNamespace");
    let owned = "name: {{ suffix }}, ownerReferences: [{uid: {{ uid }}}]";
    assert_eq!(problem(&named(owned), "shop"), "BackupHasOwner");
}
