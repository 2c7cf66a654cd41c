//! Killed after any of its writes, backup-controller continues where it was: no backup is lost or created twice, and no object is
//! released before its backup is proven.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_api::keys::{BACKUP_FINALIZER, BACKUP_OF, BACKUP_STATUS};
use e2e::{
    BACKUPS, ChaosProxy, Cluster, Namespace, OwnProcess, Paused, WAIT_TIMEOUT, eventually, is_protected,
    protect, texts,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};

/// Longer than a run takes with all its pauses and a restart in between.
const LONG: Duration = Duration::from_secs(60);

/// `ConfigMaps` with two kinds of backups, both `ConfigMaps`: one that somebody completes by hand, and one that is complete at once.
fn settings(backups: &Namespace) -> Value {
    let kind = |backup: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": backup, "retryAfter": "3s",
            "selector": {"matchLabels": {"e2e.catena.dev/crash": backup}},
        })
    };
    let backup = |succeeded: &str, failed: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "namespace": backups.name,
            "template": "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ name ~ '-' ~ suffix }}}, data: {manifest: {{ manifest }}}}",
            "succeeded": succeeded, "failed": failed,
        })
    };
    json!({
        "kinds": {"instant": kind("instant"), "slow": kind("slow")},
        "backups": {
            "instant": backup("has(object.data.manifest)", "false"),
            "slow": backup("object.data.?phase.orValue('') == 'done'", "object.data.?phase.orValue('') == 'failed'"),
        },
    })
}

async fn backups_of(backups: &Namespace, uid: &str) -> Result<Vec<ConfigMap>, String> {
    let of = ListParams::default().labels(&format!("{BACKUP_OF}={uid}"));
    let found = backups.api::<ConfigMap>().list(&of).await.map_err(|error| error.to_string())?;
    Ok(found.items)
}

fn phase(backup: &ConfigMap) -> &str {
    backup.data.as_ref().and_then(|data| data.get("phase")).map_or("", String::as_str)
}

async fn create(namespace: &Namespace, name: &str, backup: &str) -> Result<ConfigMap> {
    let mut map = ConfigMap { data: Some(texts! { "name" => name }), ..ConfigMap::default() };
    map.metadata.name = Some(name.into());
    map.metadata.labels = Some(texts! { "e2e.catena.dev/crash" => backup });
    Ok(namespace.create(&map).await?)
}

async fn until_protected(namespace: &Namespace, name: &str) -> ConfigMap {
    namespace.until_within(LONG, name, "is protected", |map: &ConfigMap| is_protected(map)).await
}

/// Protected, deleted, backed up, gone.
async fn instant(namespace: &Namespace, backups: &Namespace, name: &str) -> Result<()> {
    create(namespace, name, "instant").await?;
    let map = until_protected(namespace, name).await;
    namespace.delete::<ConfigMap>(name).await?;
    until_gone(namespace, name).await;
    let kept = backups_of(backups, &map.uid().context("uid")?).await.map_err(anyhow::Error::msg)?;
    ensure!(kept.len() == 1, "{} backups of {name}", kept.len());
    Ok(())
}

/// Protected, deleted, backed up in vain, backed up, gone.
async fn slow(namespace: &Namespace, backups: &Namespace, name: &str) -> Result<()> {
    create(namespace, name, "slow").await?;
    let map = until_protected(namespace, name).await;
    let uid = map.uid().context("uid")?;
    namespace.delete::<ConfigMap>(name).await?;
    for (count, state, outcome) in [(1, "BackingUp", "failed"), (2, "BackingUp", "done")] {
        let waiting = eventually("a backup waits to be carried out", LONG, async || {
            let found = backups_of(backups, &uid).await?;
            let waiting = found.iter().find(|backup| phase(backup).is_empty()).cloned();
            waiting.filter(|_| found.len() == count).ok_or_else(|| format!("{} backups", found.len()))
        })
        .await;
        namespace
            .until_within(LONG, name, "says that it is backed up", |map: &ConfigMap| {
                let status = map.annotations().get(BACKUP_STATUS).map(String::as_str).unwrap_or_default();
                let status: Value = serde_json::from_str(status).unwrap_or_default();
                status["state"] == state && status["attempt"] == count
            })
            .await;
        // Until now it must not have been released.
        let held = namespace.api::<ConfigMap>().get(name).await?;
        ensure!(
            held.uid() == map.uid() && held.finalizers() == [BACKUP_FINALIZER],
            "{name} was let go too soon"
        );
        backups.merge::<ConfigMap>(&waiting.name_any(), json!({"data": {"phase": outcome}})).await?;
        if outcome == "failed" {
            namespace
                .until_within(LONG, name, "says that its backup failed", |map: &ConfigMap| {
                    map.annotations().get(BACKUP_STATUS).is_some_and(|status| status.contains("\"Failed\""))
                })
                .await;
        }
    }
    until_gone(namespace, name).await;
    let kept = backups_of(backups, &uid).await.map_err(anyhow::Error::msg)?;
    let mut phases: Vec<_> = kept.iter().map(phase).collect();
    phases.sort_unstable();
    ensure!(phases == ["done", "failed"], "{name}: {phases:?}");
    Ok(())
}

async fn until_gone(namespace: &Namespace, name: &str) {
    let maps: Api<ConfigMap> = namespace.api();
    eventually("it is gone", LONG, async || match maps.get_opt(name).await {
        Ok(None) => Ok(()),
        other => Err(other.map(|map| map.map(|map| e2e::yaml(&map))).map_err(|error| error.to_string())),
    })
    .await;
}

mod alone {
    use super::{BACKUPS, ChaosProxy, Cluster, Context, LONG, OwnProcess, Paused, Result, WAIT_TIMEOUT, instant, protect, settings, slow};

    #[tokio::test]
    async fn killed_after_any_write_it_loses_no_backup_makes_none_twice_and_lets_nothing_go_too_soon()
    -> Result<()> {
        e2e::needs!(HostProcesses);
        let cluster = Cluster::alone().await?;
        // Leftovers of other tests would lose their finalizer by a write that is counted here.

        protect(&cluster).await?;
        let namespace = cluster.namespace("crashes").await?;
        let backups = cluster.namespace("backups").await?;
        let (_paused, program) = Paused::for_its_program(&cluster, BACKUPS).await?;
        let proxy = ChaosProxy::start().await?;
        let mut run = OwnProcess::start(program, &proxy, &settings(&backups))?;

        // Undisturbed, for the number of writes.
        instant(&namespace, &backups, "instant").await?;
        let of_instant = proxy.writes();
        assert_eq!(of_instant.len(), 3, "{of_instant:#?}");
        slow(&namespace, &backups, "slow").await?;
        let of_slow = proxy.writes()[3..].to_vec();
        assert!((6..=8).contains(&of_slow.len()), "{of_slow:#?}");
        println!("{of_instant:#?} {of_slow:#?}");

        for crash_at in 1..=of_instant.len() {
            let name = format!("instant-{crash_at}");
            let crashed = proxy.crash_after(crash_at);
            let disturb = async {
                tokio::time::timeout(WAIT_TIMEOUT, crashed).await.context("it did not come to the crash")??;
                run.crash().await
            };
            tokio::try_join!(instant(&namespace, &backups, &name), disturb)
                .with_context(|| format!("killed after write {crash_at}: {:#?}", proxy.writes()))?;
        }
        for crash_at in 1..=of_slow.len() {
            let name = format!("slow-{crash_at}");
            let crashed = proxy.crash_after(crash_at);
            let disturb = async {
                tokio::time::timeout(LONG, crashed).await.context("it did not come to the crash")??;
                run.crash().await
            };
            tokio::try_join!(slow(&namespace, &backups, &name), disturb)
                .with_context(|| format!("killed after write {crash_at}: {:#?}", proxy.writes()))?;
        }
        Ok(())
    }
}
