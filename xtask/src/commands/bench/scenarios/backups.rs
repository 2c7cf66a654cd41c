//! Protected objects are deleted, until all are backed up and gone.

use std::time::Instant;

use anyhow::{Result, ensure};
use catena_api::keys::{BACKUP_FINALIZER, BACKUP_OF};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    runtime::watcher,
};
use serde_json::{Value, json};

use super::super::{
    figure::{Figure, TIME},
    trial::{Trial, each, is_empty},
};

/// The namespace of the backups.
pub const NAMESPACE: &str = "bench-backups";
/// The label of protected objects.
const PROTECTED: &str = "bench.catena.dev/protected";

/// The values of backup-controller: what is deleted is kept as a Secret that holds its manifest.
pub fn values() -> Value {
    json!({
        "kinds": {"bench": {
            "apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": "manifest",
            "selector": {"matchLabels": {PROTECTED: "yes"}},
        }},
        "backups": {"manifest": {
            "apiVersion": "v1", "kind": "Secret", "resource": "secrets", "namespace": NAMESPACE,
            "template": "{apiVersion: v1, kind: Secret, metadata: {name: {{ 'backup-' ~ suffix }}}, immutable: true, stringData: {manifest.json: {{ manifest }}}}",
            "succeeded": "has(object.data) && 'manifest.json' in object.data",
        }},
    })
}

/// Creates the objects, and waits until they are protected.
pub async fn prepare(trial: &mut Trial<'_>) -> Result<()> {
    trial.replicas = None;
    let (former, ours) = backups(trial);
    former.delete_collection(&DeleteParams::background(), &ours).await?;
    let maps = trial.others::<ConfigMap>();
    let new = trial.names().map(|name| {
        let data = json!({"filling": "x".repeat(1000)});
        let map = json!({"metadata": {"name": name, "labels": {PROTECTED: "yes"}}, "data": data});
        serde_json::from_value(map)
    });
    let new: Vec<ConfigMap> = new.collect::<Result<_, _>>()?;
    each(new.into_iter(), async |map| maps.create(&PostParams::default(), &map).await.map(drop)).await?;
    let is_protected = |map: &ConfigMap| map.finalizers().iter().any(|name| name == BACKUP_FINALIZER);
    let protected = watcher::Config::default().labels(PROTECTED);
    trial.until(&maps, protected, trial.setting.objects, is_protected).await
}

/// Deletes the objects.
pub async fn run(trial: &Trial<'_>) -> Result<Vec<Figure>> {
    let maps = trial.others::<ConfigMap>();
    let started = Instant::now();
    each(trial.names(), async |name| maps.delete(&name, &DeleteParams::background()).await.map(drop)).await?;
    let protected = ListParams::default().labels(PROTECTED);
    trial.until_true("all are gone", async || is_empty(&maps, &protected).await).await?;
    let took = started.elapsed();
    let (backups, ours) = backups(trial);
    let count = backups.list_metadata(&ours).await?.items.len();
    ensure!(count == trial.setting.objects, "there are {count} backups of {} objects", trial.setting.objects);
    Ok(vec![Figure::seconds(TIME, took)])
}

fn backups(trial: &Trial<'_>) -> (Api<Secret>, ListParams) {
    let backups = Api::namespaced(trial.setting.meter.client.clone(), NAMESPACE);
    (backups, ListParams::default().labels(BACKUP_OF))
}
