//! No object is released without a proven backup; it reports the reason, and there is a way out.

use std::time::Duration;

use anyhow::{Context, Result};
use catena_api::keys::{BACKUP_OF, BACKUP_STATUS, FORCE_RELEASE};
use e2e::{
    BACKUP_BY, BACKUPS, COLLECTION_TIMEOUT, Cluster, Namespace, Pace, Release, WAIT_TIMEOUT, backup_example,
    eventually, force_release, helm, is_protected, protect, succeeds, until_says,
};
use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{ConfigMap, Namespace as CoreNamespace},
    events::v1::Event,
    rbac::v1::RoleBinding,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

/// The report of an object about its waiting.
fn status(object: &impl ResourceExt) -> Value {
    let text = object.annotations().get(BACKUP_STATUS);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn says(object: &impl ResourceExt, state: &str, reason: &str) -> bool {
    let status = status(object);
    status["state"] == state && status["reason"] == reason && status["since"].is_string()
}

async fn deleted(namespace: &Namespace, name: &str, backup_by: &str) -> Result<ConfigMap> {
    let map = protected(namespace, name, backup_by).await?;
    namespace.delete::<ConfigMap>(name).await?;
    Ok(map)
}

/// Creates an object, and waits until it is protected.
async fn protected(namespace: &Namespace, name: &str, backup_by: &str) -> Result<ConfigMap> {
    let map = serde_json::from_value(json!({"metadata": {"name": name, "labels": {BACKUP_BY: backup_by}}}))?;
    namespace.create::<ConfigMap>(&map).await?;
    Ok(namespace.until(name, "is protected", |map: &ConfigMap| is_protected(map)).await)
}

async fn jobs(client: &Client, uid: &str) -> Result<Vec<Job>> {
    let of = ListParams::default().labels(&format!("{BACKUP_OF}={uid}"));
    Ok(Api::namespaced(client.clone(), "catena-system").list(&of).await?.items)
}

/// The time of the first failure.
fn failed_at(jobs: &[Job]) -> Option<Timestamp> {
    let conditions = jobs.iter().filter_map(|job| job.status.as_ref()?.conditions.as_ref()).flatten();
    let failed = conditions.filter(|condition| condition.type_ == "Failed" && condition.status == "True");
    failed.filter_map(|condition| Some(condition.last_transition_time.as_ref()?.0)).min()
}

async fn until_event(namespace: &Namespace, reason: &str) -> Event {
    eventually(&format!("{reason} is told"), WAIT_TIMEOUT, async || {
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
    let held = namespace.api::<ConfigMap>().get(name).await?;
    namespace.merge::<ConfigMap>(name, force_release(&held)).await?;
    Ok(())
}

#[tokio::test]
async fn a_failed_backup_holds_the_object_says_why_and_is_tried_again_until_somebody_lets_it_go() -> Result<()>
{
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("fails").await?;
    let pace = Pace::start(&namespace).await?;
    let map = deleted(&namespace, "web", "fails").await?;
    let uid = map.uid().context("uid")?;
    let held = namespace
        .until("web", "says why it is held", |map: &ConfigMap| says(map, "Failed", "BackupFailed"))
        .await;
    let first = status(&held);
    let told: Timestamp = first["since"].as_str().context("since")?.parse()?;
    let failed = failed_at(&jobs(&cluster.client, &uid).await?).context("no Job failed")?;
    let took = pace.between(failed, told);
    assert!(took <= Duration::from_secs(10), "it was told {took:?} after the Job had failed");
    assert!(first["backup"].as_str().is_some_and(|backup| backup.starts_with("Job catena-system/backup-")));
    assert!(first["message"].as_str().is_some_and(|message| message.contains(FORCE_RELEASE)), "{first}");
    until_event(&namespace, "BackupFailed").await;

    eventually("another one is tried, and the failed one is kept", WAIT_TIMEOUT, async || {
        let jobs = jobs(&cluster.client, &uid).await.map_err(|error| error.to_string())?;
        let failed =
            jobs.iter().filter(|job| job.status.as_ref().and_then(|status| status.failed) == Some(1));
        if failed.count() >= 2 { Ok(()) } else { Err(format!("{} jobs", jobs.len())) }
    })
    .await;
    eventually("it is measured", WAIT_TIMEOUT, async || {
        let labels = ["entry=\"by-failing-job\"", "reason=\"BackupFailed\""];
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
    let told = until_event(&namespace, "ForceReleased").await;
    assert!(told.note.is_some_and(|note| note.contains("it is only a test")));
    let labels = ["entry=\"by-failing-job\"", "outcome=\"forced\""];
    eventually("it is counted", WAIT_TIMEOUT, async || {
        match metric(&cluster, "catena_released_objects_total{", &labels).await {
            Ok(count) if count >= 1.0 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    Ok(())
}

/// Also before it has reported anything.
#[tokio::test]
async fn an_object_that_somebody_releases_right_after_its_deletion_goes_at_once() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("at-once").await?;
    let map = deleted(&namespace, "web", "slow").await?;
    namespace.merge::<ConfigMap>("web", force_release(&map)).await?;
    namespace.until_gone::<ConfigMap>("web").await;
    let told = until_event(&namespace, "ForceReleased").await;
    assert!(told.note.is_some_and(|note| note.ends_with("it is only a test")));
    Ok(())
}

#[tokio::test]
async fn with_release_an_object_goes_after_so_many_failures() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("release").await?;
    let map = deleted(&namespace, "web", "released").await?;
    namespace.until_gone::<ConfigMap>("web").await;
    until_event(&namespace, "ReleasedWithoutBackup").await;
    assert_eq!(jobs(&cluster.client, &map.uid().context("uid")?).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_backup_that_takes_too_long_holds_until_it_ends_or_lets_go_where_the_settings_say_so() -> Result<()>
{
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("slow").await?;
    let map = deleted(&namespace, "web", "slow").await?;
    let left = deleted(&namespace, "left", "slow-released").await?;
    let held = namespace
        .until("web", "says that it takes too long", |map: &ConfigMap| says(map, "Overdue", "BackupOverdue"))
        .await;
    let message = status(&held)["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("3s") && message.contains(FORCE_RELEASE), "{message}");
    namespace.until_gone::<ConfigMap>("left").await;
    until_event(&namespace, "ReleasedWithoutBackup").await;

    let backups = Api::<ConfigMap>::namespaced(cluster.client.clone(), "catena-system");
    let of = async |map: &ConfigMap| -> Result<Vec<ConfigMap>> {
        let of = ListParams::default().labels(&format!("{BACKUP_OF}={}", map.uid().context("uid")?));
        Ok(backups.list(&of).await?.items)
    };
    assert_eq!(of(&left).await?.len(), 2, "each try is really made");
    let backup = of(&map).await?.pop().context("a backup")?.name_any();
    assert!(namespace.api::<ConfigMap>().get_opt("web").await?.is_some(), "it went without a backup");
    let done = Patch::Merge(json!({"data": {"done": "yes"}}));
    backups.patch(&backup, &PatchParams::default(), &done).await?;
    namespace.until_gone::<ConfigMap>("web").await;
    Ok(())
}

#[tokio::test]
async fn a_backup_that_may_not_be_read_holds_and_says_so_until_it_may() -> Result<()> {
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    let vault = cluster.namespace("vault").await?;
    let mut values = backup_example("manifest")?;
    // A separate label shows that these values are in force.
    values["kinds"]["configmaps"]["selector"]["matchLabels"] = json!({BACKUP_BY: "vault"});
    values["backups"]["configmap"]["namespace"] = vault.name.as_str().into();
    let _release = Release::upgrade(&cluster, BACKUPS, &values).await?;
    // Settings without their rights would not be taken.
    let namespace = cluster.namespace("unread").await?;
    protected(&namespace, "web", "vault").await?;
    let bindings = vault.api::<RoleBinding>();
    let granted = bindings.list(&ListParams::default()).await?.items;
    assert!(!granted.is_empty(), "nothing was granted there");
    bindings.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;

    namespace.delete::<ConfigMap>("web").await?;
    let held = namespace
        .until("web", "says why it is held", |map: &ConfigMap| says(map, "Blocked", "Forbidden"))
        .await;
    let message = status(&held)["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.starts_with("ControllerRevision \"backup-"), "{message}");
    assert!(message.contains(&vault.name), "{message}");
    assert!(!message.contains("Status {"), "{message}");
    assert!(metric(&cluster, "catena_held_objects{", &["configmaps", "Forbidden"]).await? > 0.5);
    assert!(is_protected(&held));

    for mut binding in granted {
        binding.metadata.resource_version = None;
        binding.metadata.uid = None;
        vault.create(&binding).await?;
    }
    namespace.until_gone::<ConfigMap>("web").await;
    Ok(())
}

#[tokio::test]
async fn in_a_namespace_that_ends_a_backup_beside_the_object_is_told_to_be_impossible() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("beside").await?;
    let map = serde_json::from_value(json!({"metadata": {"name": "web", "labels": {BACKUP_BY: "beside"}}}))?;
    namespace.create::<ConfigMap>(&map).await?;
    namespace.until("web", "is protected", |map: &ConfigMap| !map.finalizers().is_empty()).await;
    cluster.all::<CoreNamespace>().delete(&namespace.name, &DeleteParams::background()).await?;
    let held = namespace
        .until_within(COLLECTION_TIMEOUT, "web", "says why it is held", |map: &ConfigMap| {
            says(map, "Blocked", "NamespaceTerminating")
        })
        .await;
    let message = status(&held)["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("backups.beside.namespace") && message.contains(FORCE_RELEASE), "{message}");
    assert!(is_protected(&held));
    let says = format!(
        "ConfigMap/web is held by backup-controller until it is backed up, and the namespace {} of its backup is being deleted (NamespaceTerminating",
        namespace.name
    );
    until_says(WAIT_TIMEOUT, &namespace.name, "configmap/web", &says).await;
    let says =
        format!("Namespace/{} is not gone: ConfigMap/web is held by backup-controller", namespace.name);
    until_says(COLLECTION_TIMEOUT, &namespace.name, &format!("namespace/{}", namespace.name), &says).await;

    force(&namespace, "web").await?;
    cluster.until_namespace_gone(&namespace.name).await;
    Ok(())
}

/// A copy (`kubectl get --output yaml`, a restore by another tool) has the annotations of its original.
#[tokio::test]
async fn what_a_copy_brings_along_neither_releases_it_nor_says_where_its_backups_stand() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("copies").await?;
    let said = json!({
        "state": "Failed", "entry": "by-chance", "attempt": u32::MAX, "since": "2026-01-01T00:00:00Z",
        "reason": "BackupFailed", "message": "", "uid": "8f2a6c1e-0000-4000-8000-000000000000",
    });
    let annotations = json!({BACKUP_STATUS: said.to_string(), FORCE_RELEASE: "of the other one"});
    let map =
        json!({"metadata": {"name": "web", "labels": {BACKUP_BY: "fails"}, "annotations": annotations}});
    namespace.create::<ConfigMap>(&serde_json::from_value(map)?).await?;
    let map = namespace.until("web", "is protected", |map: &ConfigMap| is_protected(map)).await;
    namespace.delete::<ConfigMap>("web").await?;
    let uid = map.uid().context("uid")?;
    let held = namespace
        .until("web", "says how its own backup fares", |map: &ConfigMap| status(map)["uid"] == uid.as_str())
        .await;
    let told = status(&held);
    assert_eq!((&told["entry"], &told["attempt"]), (&json!("by-failing-job"), &json!(1)), "{told}");
    let command = format!("{FORCE_RELEASE}='{uid} <reason>'");
    assert!(told["message"].as_str().is_some_and(|message| message.ends_with(&command)), "{told}");

    force(&namespace, "web").await?;
    namespace.until_gone::<ConfigMap>("web").await;
    let told = until_event(&namespace, "ForceReleased").await;
    assert!(told.note.is_some_and(|note| note.ends_with("it is only a test")));
    Ok(())
}

/// The line of the notes of backup-controller that names former kinds, also those of other tests.
async fn kinds_without_an_entry() -> Result<String> {
    let notes = helm(&["get", "notes", BACKUPS.name()]).await?;
    Ok(notes.lines().filter(|line| line.contains("no longer have an entry")).collect())
}

/// The number of times that an Event about the settings warned of `ConfigMaps` without an entry, also those of other tests.
async fn warnings_of_no_entry(cluster: &Cluster) -> Result<i32, String> {
    let events = Api::<Event>::namespaced(cluster.client.clone(), "catena-system");
    let events = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let about = events.iter().filter(|event| {
        let regarding = event.regarding.as_ref().and_then(|about| about.name.as_deref());
        let is_it = |note: &String| note.contains("configmaps") && note.contains("protect: false");
        (regarding, event.reason.as_deref()) == (Some(BACKUPS.name()), Some("NoEntry"))
            && event.note.as_ref().is_some_and(is_it)
    });
    Ok(about.map(|event| event.series.as_ref().map_or(1, |series| series.count)).sum())
}

#[tokio::test]
async fn a_kind_that_leaves_the_values_is_told_by_an_event_and_in_the_list_of_held_objects() -> Result<()> {
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    let namespace = cluster.namespace("left").await?;
    let values = |protect: bool| {
        anyhow::Ok(json!({
            "kinds": {"leaving": {
                "apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": "configmap", "protect": protect,
                "selector": {"matchLabels": {"e2e.catena.dev/leaving": "yes"}},
            }},
            "backups": backup_example("manifest")?["backups"],
        }))
    };
    let release = Release::upgrade(&cluster, BACKUPS, &values(true)?).await?;
    let map = json!({"metadata": {"name": "left", "labels": {"e2e.catena.dev/leaving": "yes"}}});
    namespace.create::<ConfigMap>(&serde_json::from_value(map)?).await?;
    namespace.until("left", "is protected", |map: &ConfigMap| is_protected(map)).await;

    let before = warnings_of_no_entry(&cluster).await.map_err(anyhow::Error::msg)?;
    release.change(&json!({})).await?;
    let former = kinds_without_an_entry().await?;
    anyhow::ensure!(former.contains("ConfigMap"), "{former}");
    eventually("the former kind is told", WAIT_TIMEOUT, async || {
        let now = warnings_of_no_entry(&cluster).await?;
        if now > before { Ok(()) } else { Err(format!("{now} times, as before")) }
    })
    .await;
    namespace.delete::<ConfigMap>("left").await?;
    let held = succeeds(&namespace.name, &["held"]).await?.out;
    anyhow::ensure!(held.contains("ConfigMap/left") && held.contains("NoEntry"), "{held}");

    release.change(&values(false)?).await?;
    namespace.until_gone::<ConfigMap>("left").await;
    let former = kinds_without_an_entry().await?;
    anyhow::ensure!(!former.contains("ConfigMap"), "{former}");
    release.restore().await
}
