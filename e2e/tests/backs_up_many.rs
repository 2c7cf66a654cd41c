//! Thousands of protected objects, a tenth of which is deleted at once: none is lost, and the cost is known.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use catena_api::keys::{BACKUP_FINALIZER, BACKUP_OF};
use e2e::{BACKUPS, ChaosProxy, Cluster, Namespace, OwnProcess, Paused, eventually_every, protect};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
    core::PartialObjectMeta,
};
use serde_json::{Value, json};
use tokio::time::Instant;

const CRASHES: usize = 20;
/// The machine may be busy.
const LONG: Duration = Duration::from_secs(300);
/// An answer about thousands of objects is long.
const PAUSE: Duration = Duration::from_secs(2);
const MEBIBYTE: u64 = 1024 * 1024;

fn settings(backups: &Namespace, protect: bool) -> Value {
    json!({
        "kinds": {"many": {
            "apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": "manifest", "protect": protect,
            "selector": {"matchLabels": {"e2e.catena.dev/many": "yes"}},
        }},
        "backups": {"manifest": {
            "apiVersion": "v1", "kind": "Secret", "resource": "secrets", "namespace": backups.name,
            "template": "{apiVersion: v1, kind: Secret, metadata: {name: {{ 'backup-' ~ suffix }}}, immutable: true, stringData: {manifest.json: {{ manifest }}}}",
            "succeeded": "'manifest.json' in object.data",
        }},
    })
}

/// Number of protected objects. The controller is meant for 10,000: `CATENA_MANY=10000` takes ten
/// minutes on a busy machine.
fn many() -> Result<usize> {
    std::env::var("CATENA_MANY").map_or(Ok(2_000), |many| Ok(many.parse()?))
}

async fn create(namespace: &Namespace, count: usize) -> Result<()> {
    let create = |number: usize| async move {
        let map = json!({
            "metadata": {"name": format!("map-{number}"), "labels": {"e2e.catena.dev/many": "yes"}},
            "data": {"number": number.to_string(), "filling": "x".repeat(1000)},
        });
        namespace.create::<ConfigMap>(&serde_json::from_value(map)?).await?;
        anyhow::Ok(())
    };
    stream::iter(0..count).map(create).buffer_unordered(24).try_collect().await
}

async fn metadata(namespace: &Namespace) -> Result<Vec<PartialObjectMeta<ConfigMap>>, String> {
    let ours = ListParams::default().labels("e2e.catena.dev/many").match_any();
    let found = namespace.api::<ConfigMap>().list_metadata(&ours).await;
    Ok(found.map_err(|error| error.to_string())?.items)
}

async fn until_protected(namespace: &Namespace, count: usize) {
    eventually_every(PAUSE, &format!("{count} objects are protected"), LONG, async || {
        let found = metadata(namespace).await?;
        let protected = found.iter().filter(|map| map.finalizers() == [BACKUP_FINALIZER]).count();
        if protected == count { Ok(()) } else { Err(format!("{protected} of {}", found.len())) }
    })
    .await;
}

/// Deletes these objects, and returns their uids.
async fn delete(namespace: &Namespace, numbers: std::ops::Range<usize>) -> Result<BTreeSet<String>> {
    let maps = &namespace.api::<ConfigMap>();
    let delete = |number: usize| async move {
        let deleted = maps.delete(&format!("map-{number}"), &DeleteParams::background()).await?;
        let left = deleted.left().context("it went at once")?;
        left.uid().context("uid")
    };
    stream::iter(numbers).map(delete).buffer_unordered(24).try_collect().await
}

async fn until_left(namespace: &Namespace, count: usize) {
    eventually_every(PAUSE, &format!("{count} objects are left"), LONG, async || {
        match metadata(namespace).await?.len() {
            left if left == count => Ok(()),
            left => Err(format!("{left} are left")),
        }
    })
    .await;
}

/// Every deleted object has exactly one backup.
async fn backed_up(backups: &Namespace, uids: &BTreeSet<String>) -> Result<()> {
    let secrets = backups.api::<k8s_openapi::api::core::v1::Secret>();
    let found = secrets.list_metadata(&ListParams::default().labels(BACKUP_OF)).await?;
    let of: Vec<_> = found.iter().filter_map(|backup| backup.labels().get(BACKUP_OF)).collect();
    let distinct: BTreeSet<String> = of.iter().map(|uid| (*uid).clone()).collect();
    ensure!(distinct == *uids, "{} backups are missing", uids.difference(&distinct).count());
    ensure!(of.len() == uids.len(), "{} backups of {} objects", of.len(), uids.len());
    Ok(())
}

/// Waits until the writes stop, and returns their number.
async fn until_silent(proxy: &ChaosProxy) -> usize {
    let mut before = 0;
    eventually_every(PAUSE, "nothing more is written", LONG, async || match proxy.writes().len() {
        written if written == before => Ok(written),
        written => Err(std::mem::replace(&mut before, written)),
    })
    .await
}

async fn until_unprotected(namespace: &Namespace) {
    eventually_every(PAUSE, "no object is protected any more", LONG, async || {
        let found = metadata(namespace).await?;
        let protected = found.iter().filter(|map| !map.finalizers().is_empty()).count();
        if protected == 0 { Ok(()) } else { Err(format!("{protected} of {}", found.len())) }
    })
    .await;
}

mod alone {
    use super::{
        BACKUPS, CRASHES, ChaosProxy, Cluster, Context, Instant, LONG, MEBIBYTE, OwnProcess, Paused, Result,
        backed_up, create, delete, many, protect, settings, until_left, until_protected, until_silent,
        until_unprotected,
    };

    mod long {
        use super::*;

        #[tokio::test]
        async fn a_tenth_of_thousands_deleted_at_once_is_all_backed_up_also_through_twenty_kills()
        -> Result<()> {
            e2e::needs!(HostProcesses);
            let (many, few) = (many()?, many()? / 10);
            let cluster = Cluster::alone().await?;
            protect(&cluster).await?;
            let namespace = cluster.namespace("many").await?;
            let backups = cluster.namespace("kept").await?;
            let _paused = Paused::pause(&cluster, BACKUPS).await?;
            let proxy = ChaosProxy::start().await?;
            let mut process =
                OwnProcess::start(OwnProcess::program(BACKUPS)?, &proxy, &settings(&backups, true))?;

            let started = Instant::now();
            create(&namespace, many).await?;
            proxy.until_written(many, LONG).await;
            println!("{many} created and protected after {:?}", started.elapsed());
            until_protected(&namespace, many).await;

            let started = Instant::now();
            let mut uids = delete(&namespace, 0..few).await?;
            proxy.until_written(many + 2 * few, LONG).await;
            let took = started.elapsed();
            until_left(&namespace, many - few).await;
            backed_up(&backups, &uids).await?;
            let memory = process.resident()?;
            println!("{few} deleted, backed up and gone after {took:?}, {} MiB", memory / MEBIBYTE);
            // One write protects, one backs up, one releases.
            assert_eq!(until_silent(&proxy).await, many + 2 * few);
            assert!(memory < 40 * MEBIBYTE, "{} MiB", memory / MEBIBYTE);

            // Once more, with many kills.
            let before = proxy.writes().len();
            let delete = async {
                uids.extend(delete(&namespace, few..2 * few).await?);
                anyhow::Ok(())
            };
            let crash = async {
                for crash in 1..=CRASHES {
                    // The number of writes before a kill varies, so that the kills spread over the whole run.
                    let crashed = proxy.crash_after(few / 50 + crash % 5);
                    let came = tokio::time::timeout(LONG, crashed).await;
                    came.with_context(|| format!("crash {crash} did not come"))??;
                    process.crash().await?;
                }
                anyhow::Ok(())
            };
            let started = Instant::now();
            tokio::try_join!(delete, crash)?;
            until_left(&namespace, many - 2 * few).await;
            let took = started.elapsed();
            backed_up(&backups, &uids).await?;
            let writes = proxy.writes().len() - before;
            println!("{few} more with {CRASHES} kills after {took:?}, {writes} writes");

            // All other objects lose the finalizer.
            process.configure(&settings(&backups, false))?;
            until_unprotected(&namespace).await;
            Ok(())
        }
    }
}
