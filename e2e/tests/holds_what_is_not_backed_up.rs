//! Without a proven backup nothing goes, it says why, and there is a way out.

use std::time::Duration;

use anyhow::{Context, Result};
use catena_api::keys::{BACKUP_FINALIZER, BACKUP_OF, BACKUP_STATUS, FORCE_RELEASE};
use e2e::{BACKUP_BY, BACKUPS, Cluster, Namespace, PATIENCE, eventually, protect};
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{ConfigMap, Namespace as CoreNamespace},
        events::v1::Event,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
};
use serde_json::{Value, json};

/// What an object says about its waiting.
fn status(object: &impl ResourceExt) -> Value {
    let text = object.annotations().get(BACKUP_STATUS);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn says(object: &impl ResourceExt, state: &str, reason: &str) -> bool {
    let status = status(object);
    status["state"] == state && status["reason"] == reason && status["since"].is_string()
}

async fn deleted(namespace: &Namespace, name: &str, backup_by: &str) -> Result<ConfigMap> {
    let map = serde_json::from_value(json!({"metadata": {"name": name, "labels": {BACKUP_BY: backup_by}}}))?;
    namespace.create::<ConfigMap>(&map).await?;
    let is_protected =
        |map: &ConfigMap| map.finalizers().iter().any(|finalizer| finalizer == BACKUP_FINALIZER);
    let map = namespace.until(name, "is protected", is_protected).await;
    namespace.delete::<ConfigMap>(name).await?;
    Ok(map)
}

async fn jobs(client: &Client, uid: &str) -> Result<Vec<Job>> {
    let of = ListParams::default().labels(&format!("{BACKUP_OF}={uid}"));
    Ok(Api::namespaced(client.clone(), "catena-system").list(&of).await?.items)
}

async fn until_told(namespace: &Namespace, reason: &str) -> Event {
    eventually(&format!("{reason} is told"), PATIENCE, async || {
        let events = namespace.api::<Event>().list(&ListParams::default()).await;
        let events = events.map_err(|error| vec![error.to_string()])?.items;
        let found = events.iter().find(|event| event.reason.as_deref() == Some(reason)).cloned();
        found.ok_or_else(|| events.into_iter().filter_map(|event| event.reason).collect::<Vec<_>>())
    })
    .await
}

async fn metric(cluster: &Cluster, name: &str, labels: &[&str]) -> Result<f64> {
    let page = BACKUPS.process(cluster).await?.metrics().await?;
    let line =
        page.lines().find(|line| line.starts_with(name) && labels.iter().all(|label| line.contains(label)));
    let value = line.and_then(|line| line.rsplit_once(' ')).and_then(|(_, value)| value.parse().ok());
    Ok(value.unwrap_or_default())
}

async fn force(namespace: &Namespace, name: &str) -> Result<()> {
    let forced = json!({"metadata": {"annotations": {FORCE_RELEASE: "it is only a test"}}});
    namespace.merge::<ConfigMap>(name, forced).await?;
    Ok(())
}

#[tokio::test]
async fn a_failed_backup_holds_the_object_says_why_and_is_tried_again_until_somebody_lets_it_go() -> Result<()>
{
    let cluster = Cluster::shared().await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("fails").await?;
    let map = deleted(&namespace, "web", "fails").await?;
    let within = Duration::from_secs(10);
    let held = namespace
        .until_within(within, "web", "says why it is held", |map: &ConfigMap| {
            says(map, "Failed", "BackupFailed")
        })
        .await;
    let first = status(&held);
    assert!(first["backup"].as_str().is_some_and(|backup| backup.starts_with("Job catena-system/backup-")));
    assert!(first["message"].as_str().is_some_and(|message| message.contains(FORCE_RELEASE)), "{first}");
    until_told(&namespace, "BackupFailed").await;

    let uid = map.uid().context("uid")?;
    eventually("another one is tried, and the failed one is kept", PATIENCE, async || {
        let jobs = jobs(&cluster.client, &uid).await.map_err(|error| error.to_string())?;
        let failed =
            jobs.iter().filter(|job| job.status.as_ref().and_then(|status| status.failed) == Some(1));
        if failed.count() >= 2 { Ok(()) } else { Err(format!("{} jobs", jobs.len())) }
    })
    .await;
    eventually("it is measured", PATIENCE, async || {
        let labels = ["kind=\"by-failing-job\"", "reason=\"BackupFailed\""];
        let count =
            metric(&cluster, "catena_held_objects{", &labels).await.map_err(|error| error.to_string())?;
        let age = metric(&cluster, "catena_held_oldest_seconds{", &labels)
            .await
            .map_err(|error| error.to_string())?;
        if count >= 1.0 && age > 0.0 { Ok(()) } else { Err(format!("{count} objects, {age} s")) }
    })
    .await;

    force(&namespace, "web").await?;
    namespace.until_gone::<ConfigMap>("web").await;
    let told = until_told(&namespace, "ForceReleased").await;
    assert!(told.note.is_some_and(|note| note.contains("it is only a test")));
    let labels = ["kind=\"by-failing-job\"", "outcome=\"forced\""];
    assert!(metric(&cluster, "catena_released_objects_total{", &labels).await? >= 1.0);
    Ok(())
}

#[tokio::test]
async fn with_release_an_object_goes_after_so_many_failures() -> Result<()> {
    let cluster = Cluster::shared().await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("release").await?;
    let map = deleted(&namespace, "web", "released").await?;
    namespace.until_gone::<ConfigMap>("web").await;
    until_told(&namespace, "ReleasedWithoutBackup").await;
    assert_eq!(jobs(&cluster.client, &map.uid().context("uid")?).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn in_a_namespace_that_ends_a_backup_beside_the_object_is_told_to_be_impossible() -> Result<()> {
    let cluster = Cluster::shared().await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("beside").await?;
    let map = serde_json::from_value(json!({"metadata": {"name": "web", "labels": {BACKUP_BY: "beside"}}}))?;
    namespace.create::<ConfigMap>(&map).await?;
    namespace.until("web", "is protected", |map: &ConfigMap| !map.finalizers().is_empty()).await;
    let namespaces = cluster.all::<CoreNamespace>();
    namespaces.delete(&namespace.name, &DeleteParams::background()).await?;
    let held = namespace
        .until("web", "says why it is held", |map: &ConfigMap| says(map, "Blocked", "NamespaceTerminating"))
        .await;
    let message = status(&held)["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("backups.beside.namespace") && message.contains(FORCE_RELEASE), "{message}");
    assert!(held.finalizers().iter().any(|finalizer| finalizer == BACKUP_FINALIZER));

    force(&namespace, "web").await?;
    eventually("the namespace is gone", 2 * PATIENCE, async || {
        match namespaces.get_opt(&namespace.name).await {
            Ok(None) => Ok(()),
            other => Err(other.map(|left| e2e::yaml(&left)).map_err(|error| error.to_string())),
        }
    })
    .await;
    Ok(())
}

/// A foreign kind and its own kind of backup, shaped as those of `CloudNativePG`, without their controller.
#[tokio::test]
async fn a_foreign_backup_resource_is_waited_for_whatever_it_says_until_it_says_completed() -> Result<()> {
    let cluster = Cluster::shared().await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("foreign").await?;
    let kinds = cluster.all::<CustomResourceDefinition>();
    for (kind, plural) in [("Cluster", "clusters"), ("Backup", "backups")] {
        let group = "postgresql.cnpg.io";
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural}, "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
        });
        // Another test may have left the kind, with a schema of its own.
        kinds
            .patch(&format!("{plural}.{group}"), &PatchParams::apply("e2e").force(), &Patch::Apply(crd))
            .await?;
    }
    let api = |kind: &str| -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("postgresql.cnpg.io", "v1", kind));
        Api::namespaced_with(cluster.client.clone(), &namespace.name, &resource)
    };
    let (clusters, backups) = (api("Cluster"), api("Backup"));
    let postgres: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster",
        "metadata": {"name": "pg", "labels": {BACKUP_BY: "cnpg"}},
        "spec": {"instances": 1, "backup": {"barmanObjectStore": {"destinationPath": "s3://backups"}}},
    }))?;
    eventually("the kind is served", PATIENCE, async || {
        clusters.create(&PostParams::default(), &postgres).await.map_err(|error| error.to_string())
    })
    .await;
    eventually("the cluster is protected", 2 * PATIENCE, async || {
        let found = clusters.get("pg").await.map_err(|error| error.to_string())?;
        if found.finalizers().is_empty() { Err(e2e::yaml(&found)) } else { Ok(()) }
    })
    .await;
    clusters.delete("pg", &DeleteParams::default()).await?;
    let backup = eventually("there is a Backup", PATIENCE, async || {
        let found = backups.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        found.into_iter().next().ok_or_else(|| "none".to_owned())
    })
    .await;
    assert_eq!(backup.data["spec"], json!({"cluster": {"name": "pg"}, "method": "barmanObjectStore"}));
    for phase in ["pending", "running", "walArchivingFailing", "no-such-phase"] {
        let change = json!({"status": {"phase": phase}});
        backups.patch_status(&backup.name_any(), &PatchParams::default(), &Patch::Merge(change)).await?;
        eventually("it says that the backup runs", PATIENCE, async || {
            let held = clusters.get("pg").await.map_err(|error| error.to_string())?;
            if says(&held, "BackingUp", "BackupRunning") { Ok(()) } else { Err(e2e::yaml(&held)) }
        })
        .await;
    }
    let completed = json!({"status": {"phase": "completed"}});
    backups.patch_status(&backup.name_any(), &PatchParams::default(), &Patch::Merge(completed)).await?;
    eventually("the cluster is gone", PATIENCE, async || match clusters.get_opt("pg").await {
        Ok(None) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    for plural in ["clusters", "backups"] {
        kinds.delete(&format!("{plural}.postgresql.cnpg.io"), &DeleteParams::background()).await?;
    }
    Ok(())
}
