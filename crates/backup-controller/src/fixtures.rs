//! A protected object, its settings and its backups, for tests.

use std::sync::Arc;

use backup_controller::{
    Settings,
    annotation::{BackupStatus, State},
    backup::{Situation, render},
    force_release::ForceRelease,
    metadata,
    observed::{Held, Observed, Row},
};
use catena_api::{
    keys::{BACKUP_FINALIZER, BACKUP_TARGET},
    reason,
};
use kube::api::ObjectMeta;
use operator_kit::run::Backoffs;
use operator_watch::{DynamicRow, SeenVersion, WriteTarget};
use serde_json::{Value, json};

/// The field manager of the controller.
pub const MANAGER: &str = "backup-controller";

/// The template of a backup that needs nothing but a name.
pub const TEMPLATE: &str = "{apiVersion: batch/v1, kind: Job, metadata: {name: {{ name ~ '-' ~ suffix }}}}";

/// Settings with this template, which back up a `ConfigMap` by a Job in a namespace.
pub fn settings(template: &str, namespace: &str) -> Settings {
    with_policy(template, namespace, &json!({}))
}

/// The same, with more fields of the entry.
pub fn with_policy(template: &str, namespace: &str, policy: &Value) -> Settings {
    let mut maps =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": "job"});
    json_patch::merge(&mut maps, policy);
    let settings = json!({
        "kinds": {"maps": maps},
        "backups": {"job": {
            "apiVersion": "batch/v1", "kind": "Job", "resource": "jobs", "namespace": namespace, "template": template,
            "succeeded": "object.?status.?conditions.orValue([]).exists(c, c.type == 'Complete' && c.status == 'True')",
            "failed": "object.?status.?conditions.orValue([]).exists(c, c.type == 'Failed' && c.status == 'True')",
        }},
    });
    serde_json::from_value(settings).unwrap()
}

/// The status of a Job that has ended with this condition.
pub fn ended(condition: &str) -> Value {
    json!({"conditions": [{"type": condition, "status": "True"}]})
}

/// An object that is being deleted and held, from a live read.
pub fn target(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
        "metadata": {
            "name": "web", "namespace": namespace, "uid": "u", "resourceVersion": "7",
            "deletionTimestamp": "2026-06-01T12:00:30Z", "deletionGracePeriodSeconds": 30,
            "finalizers": [BACKUP_FINALIZER],
        },
    })
}

/// A backup on the server.
pub fn created(settings: &Settings, target: &Value, attempt: u32) -> Value {
    let mut backup = render(&settings.templates, &settings.kinds["maps"], target, attempt).unwrap();
    backup["metadata"]["creationTimestamp"] = json!("2026-06-01T12:00:00Z");
    let mut annotations = json!({});
    annotations[format!("f:{BACKUP_TARGET}")] = json!({});
    backup["metadata"]["managedFields"] = json!([
        {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:status": {}}},
        {"manager": MANAGER, "operation": "Update", "fieldsV1": {"f:metadata": {"f:annotations": annotations}}},
    ]);
    backup
}

/// An object from its watch.
pub fn watched(settings: &Settings, object: &Value) -> Arc<DynamicRow<Row>> {
    let metadata: ObjectMeta = serde_json::from_value(object["metadata"].clone()).unwrap();
    let resource = settings.kinds["maps"].resource.clone();
    let write_target = Arc::new(WriteTarget::unwatched(resource));
    let row = Row {
        selected_by: vec!["maps".into()],
        judged_by: settings.by_resource["configmaps"].fingerprint().clone(),
        finalizers: metadata.finalizers.clone().unwrap_or_default(),
    };
    Arc::new(DynamicRow { metadata, kind_id: "configmaps".into(), write_target, row })
}

/// The status of an object after this attempt has failed.
pub fn failed(attempt: u32) -> BackupStatus {
    BackupStatus {
        uid: "u".into(),
        state: State::Failed,
        entry: "maps".into(),
        attempt,
        backup: None,
        failed: None,
        begun: None,
        since: "2026-06-01T12:00:00Z".parse().unwrap(),
        reason: reason::BACKUP_FAILED.into(),
        message: String::new(),
    }
}

/// A held object, with the state of its backups.
pub fn held(settings: &Settings, object: &Value, situation: Situation) -> Observed {
    let time = |text: &str| text.parse().unwrap();
    Observed {
        target: watched(settings, object),
        backoffs: Backoffs::default(),
        kind: Some(settings.kinds["maps"].clone()),
        is_selected: true,
        excess: None,
        backups: SeenVersion::unwatched(),
        held: Some(Held {
            finalizers: metadata::finalizers(object),
            is_annotated: object.pointer("/metadata/annotations").is_some(),
            since: time("2026-06-01T12:00:30Z"),
            now: time("2026-06-01T13:00:30Z"),
            status: None,
            tell_again: None,
            force_release: ForceRelease::Unasked,
            refusals: 0,
            situation: Some(situation),
        }),
    }
}

/// An object that is not being deleted, and has these finalizers.
pub fn living(settings: &Settings, finalizers: &[&str]) -> Observed {
    let nothing = Situation::Absent { attempt: 1, backup: json!({}) };
    let mut observed = Observed { held: None, ..held(settings, &target("shop"), nothing) };
    if let Some(target) = Arc::get_mut(&mut observed.target) {
        target.metadata.deletion_timestamp = None;
        target.row.finalizers = finalizers.iter().map(|finalizer| (*finalizer).to_owned()).collect();
    }
    observed
}
