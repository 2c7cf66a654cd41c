//! Killed after any of its writes, backup-controller continues where it was: no backup is lost or created twice, and no object is
//! released before its backup is proven.

use anyhow::{Context, Result, ensure};
use catena_api::keys::{BACKUP_FINALIZER, BACKUP_OF, BACKUP_STATUS};
use e2e::{
    BACKUPS, ChaosProxy, Cluster, FinalizerCleanup, Namespace, OwnKind, OwnProcess, WAIT_TIMEOUT, eventually,
    is_protected,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{ResourceExt, api::ListParams, core::DynamicObject};
use serde_json::{Value, json};
use tokio::time::timeout;

/// The label by whose value an entry selects.
const LABEL: &str = "e2e.catena.dev/crash";

/// Objects with two kinds of backups, both `ConfigMaps`: one that somebody completes by hand, and one that is complete at once.
fn settings(objects: &OwnKind, backups: &Namespace) -> Value {
    let kind = |backup: &str| {
        let mut entry = objects.described();
        (entry["backup"], entry["retryAfter"]) = (backup.into(), "3s".into());
        entry["selector"] = json!({"matchLabels": {LABEL: backup}});
        entry
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

async fn protected(objects: &OwnKind, name: &str, backup: &str) -> Result<DynamicObject> {
    objects.add(name, &json!({LABEL: backup})).await?;
    Ok(objects.until(name, "is protected", is_protected).await)
}

/// Protected, deleted, backed up, gone.
async fn instant(objects: &OwnKind, backups: &Namespace, name: &str) -> Result<()> {
    let object = protected(objects, name, "instant").await?;
    objects.delete(name).await?;
    objects.until_gone(name).await;
    let kept = backups_of(backups, &object.uid().context("uid")?).await.map_err(anyhow::Error::msg)?;
    ensure!(kept.len() == 1, "{} backups of {name}", kept.len());
    Ok(())
}

/// Protected, deleted, backed up in vain, backed up, gone.
async fn slow(objects: &OwnKind, backups: &Namespace, name: &str) -> Result<()> {
    let object = protected(objects, name, "slow").await?;
    let uid = object.uid().context("uid")?;
    objects.delete(name).await?;
    for (count, state, outcome) in [(1, "BackingUp", "failed"), (2, "BackingUp", "done")] {
        let waiting = eventually("a backup waits to be carried out", WAIT_TIMEOUT, async || {
            let found = backups_of(backups, &uid).await?;
            let waiting = found.iter().find(|backup| phase(backup).is_empty()).cloned();
            waiting.filter(|_| found.len() == count).ok_or_else(|| format!("{} backups", found.len()))
        })
        .await;
        objects
            .until(name, "says that it is backed up", |object| {
                let status = object.annotations().get(BACKUP_STATUS).map(String::as_str).unwrap_or_default();
                let status: Value = serde_json::from_str(status).unwrap_or_default();
                status["state"] == state && status["attempt"] == count
            })
            .await;
        // Until now it must not have been released.
        let held = objects.get(name).await?;
        ensure!(
            held.uid() == object.uid() && held.finalizers() == [BACKUP_FINALIZER],
            "{name} was let go too soon"
        );
        backups.merge::<ConfigMap>(&waiting.name_any(), json!({"data": {"phase": outcome}})).await?;
        if outcome == "failed" {
            objects
                .until(name, "says that its backup failed", |object| {
                    object
                        .annotations()
                        .get(BACKUP_STATUS)
                        .is_some_and(|status| status.contains("\"Failed\""))
                })
                .await;
        }
    }
    objects.until_gone(name).await;
    let kept = backups_of(backups, &uid).await.map_err(anyhow::Error::msg)?;
    let mut phases: Vec<_> = kept.iter().map(phase).collect();
    phases.sort_unstable();
    ensure!(phases == ["done", "failed"], "{name}: {phases:?}");
    Ok(())
}

/// Plays a story in which the controller is killed after this write.
async fn killed_after(
    crash_at: usize,
    proxy: &ChaosProxy,
    run: &mut OwnProcess,
    story: impl Future<Output = Result<()>>,
) -> Result<()> {
    let crashed = proxy.crash_after(crash_at);
    let disturb = async {
        timeout(WAIT_TIMEOUT, crashed).await.context("it did not come to the crash")??;
        run.crash().await
    };
    tokio::try_join!(story, disturb)
        .with_context(|| format!("killed after write {crash_at}: {:#?}", proxy.writes()))?;
    Ok(())
}

mod long {
    use super::*;

    #[tokio::test]
    async fn killed_after_any_write_it_loses_no_backup_makes_none_twice_and_lets_nothing_go_too_soon()
    -> Result<()> {
        e2e::needs!(HostProcesses);
        let cluster = Cluster::with(&[]).await?;
        let namespace = cluster.namespace("crashes").await?;
        let backups = cluster.namespace("backups").await?;
        let objects = FinalizerCleanup::of(OwnKind::plain(&cluster, &namespace).await?);
        let proxy = ChaosProxy::start().await?;
        let settings = settings(&objects, &backups);
        let mut run = OwnProcess::start(OwnProcess::program(BACKUPS)?, &proxy, &settings)?;

        // Undisturbed, for the number of writes.
        instant(&objects, &backups, "instant").await?;
        proxy.until_written(3, WAIT_TIMEOUT).await;
        let of_instant = proxy.writes();
        assert_eq!(of_instant.len(), 3, "{of_instant:#?}");
        slow(&objects, &backups, "slow").await?;
        proxy.until_written(3 + 6, WAIT_TIMEOUT).await;
        let of_slow = proxy.writes()[3..].to_vec();
        assert!((6..=8).contains(&of_slow.len()), "{of_slow:#?}");
        println!("{of_instant:#?} {of_slow:#?}");

        for crash_at in 1..=of_instant.len() {
            let name = format!("instant-{crash_at}");
            killed_after(crash_at, &proxy, &mut run, instant(&objects, &backups, &name)).await?;
        }
        for crash_at in 1..=of_slow.len() {
            let name = format!("slow-{crash_at}");
            killed_after(crash_at, &proxy, &mut run, slow(&objects, &backups, &name)).await?;
        }
        Ok(())
    }
}
