//! Uninstalling backup-controller leaves no object that can never be deleted.

use anyhow::{Result, ensure};
use e2e::{
    BACKUP_BY, BACKUPS, ChaosProxy, Cluster, Namespace, OwnProcess, Paused, Release, WAIT_TIMEOUT,
    eventually, force_release, is_protected, protect, protecting, until_nothing_is_protected,
};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::{apps::v1::Deployment, batch::v1::Job, coordination::v1::Lease, core::v1::ConfigMap};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::json;

async fn create(namespace: &Namespace, count: usize) -> Result<()> {
    let create = |number| async move {
        let map = json!({"metadata": {"name": format!("web-{number}"), "labels": {BACKUP_BY: "manifest"}}});
        namespace.create::<ConfigMap>(&serde_json::from_value(map)?).await?;
        anyhow::Ok(())
    };
    stream::iter(0..count).map(create).buffer_unordered(16).try_collect().await
}

async fn protected(namespace: &Namespace) -> Result<usize> {
    let maps = namespace.api::<ConfigMap>().list_metadata(&ListParams::default()).await?;
    Ok(maps.iter().filter(|map| is_protected(*map)).count())
}

async fn until_protected(namespace: &Namespace, count: usize) {
    eventually(&format!("{count} objects are protected"), WAIT_TIMEOUT, async || {
        match protected(namespace).await {
            Ok(found) if found == count => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn uninstalling_takes_the_finalizer_from_every_object_also_from_those_that_wait() -> Result<()> {
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("drain").await?;
    create(&namespace, 200).await?;
    namespace
        .create::<ConfigMap>(&serde_json::from_value(
            json!({"metadata": {"name": "held", "labels": {BACKUP_BY: "fails"}}}),
        )?)
        .await?;
    until_protected(&namespace, 201).await;
    namespace.delete::<ConfigMap>("held").await?;
    namespace.until("held", "is held", |map: &ConfigMap| !map.annotations().is_empty()).await;

    let uninstalled = Release::uninstall(&cluster, BACKUPS).await?;
    assert_eq!(protected(&namespace).await?, 0);
    namespace.until_gone::<ConfigMap>("held").await;
    let deployments = Api::<Deployment>::namespaced(cluster.client.clone(), "catena-system");
    assert!(deployments.get_opt(BACKUPS.name()).await?.is_none());
    namespace.delete::<ConfigMap>("web-0").await?;
    namespace.until_gone::<ConfigMap>("web-0").await;

    // After a new installation, the remaining objects are protected again.
    tokio::task::spawn_blocking(move || drop(uninstalled)).await?;
    Release::set(BACKUPS, &protecting()?).await?;
    BACKUPS.until_ready(&cluster).await;
    until_protected(&namespace, 199).await;
    Ok(())
}

#[tokio::test]
async fn a_mistake_in_the_settings_keeps_nobody_from_uninstalling() -> Result<()> {
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("mistake").await?;
    create(&namespace, 3).await?;
    until_protected(&namespace, 3).await;
    let mut values = protecting()?;
    values["backups"]["manifest"]["succeeded"] = "objct.data".into();
    Release::set(BACKUPS, &values).await?;

    let uninstalled = Release::uninstall(&cluster, BACKUPS).await?;
    assert_eq!(protected(&namespace).await?, 0);
    tokio::task::spawn_blocking(move || drop(uninstalled)).await?;
    Release::set(BACKUPS, &protecting()?).await?;
    BACKUPS.until_ready(&cluster).await;
    Ok(())
}

#[tokio::test]
async fn uninstalling_is_refused_while_objects_wait_where_the_values_say_so() -> Result<()> {
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    protect(&cluster).await?;
    until_nothing_is_protected(&cluster).await;
    let mut values = protecting()?;
    values["drain"] = json!({"heldObjects": "Refuse"});
    Release::set(BACKUPS, &values).await?;
    let namespace = cluster.namespace("refuse").await?;
    create(&namespace, 3).await?;
    let held = json!({"metadata": {"name": "held", "labels": {BACKUP_BY: "fails"}}});
    namespace.create::<ConfigMap>(&serde_json::from_value(held)?).await?;
    until_protected(&namespace, 4).await;
    namespace.delete::<ConfigMap>("held").await?;

    let refused = Release::try_uninstall(&cluster, BACKUPS).await;
    ensure!(refused.is_err(), "it was uninstalled");
    let job = Api::<Job>::namespaced(cluster.client.clone(), "catena-system")
        .get("backup-controller-drain")
        .await?;
    let failed = job.status.and_then(|status| status.failed);
    assert_eq!(failed, Some(1), "it was tried again, or has not ended");
    assert_eq!(protected(&namespace).await?, 4);
    BACKUPS.until_ready(&cluster).await;

    let held = namespace.api::<ConfigMap>().get("held").await?;
    namespace.merge::<ConfigMap>("held", force_release(&held)).await?;
    namespace.until_gone::<ConfigMap>("held").await;
    let uninstalled = Release::uninstall(&cluster, BACKUPS).await?;
    assert_eq!(protected(&namespace).await?, 0);
    tokio::task::spawn_blocking(move || drop(uninstalled)).await?;
    Release::set(BACKUPS, &protecting()?).await?;
    BACKUPS.until_ready(&cluster).await;
    Ok(())
}

#[tokio::test]
async fn a_drain_that_was_killed_goes_on_where_it_was() -> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    protect(&cluster).await?;
    until_nothing_is_protected(&cluster).await;
    let namespace = cluster.namespace("resume").await?;
    create(&namespace, 60).await?;
    until_protected(&namespace, 60).await;

    let _paused = Paused::pause(&cluster, BACKUPS).await?;
    let program = OwnProcess::program(BACKUPS)?;
    let proxy = ChaosProxy::start().await?;
    let mut settings = json!({"kinds": protecting()?["kinds"], "backups": protecting()?["backups"]});
    // A kind that another test takes away fails a drain, and the Job of the chart tries again.
    if let Some(kinds) = settings["kinds"].as_object_mut() {
        kinds.retain(|_, kind| kind["resource"] == "configmaps");
    }
    let mut process = OwnProcess::start(program.clone(), &proxy, &settings)?;
    process.stop().await?;
    let crashed = proxy.crash_after(25);
    let mut drain = process.spawn(&["drain"])?;
    crashed.await?;
    drain.kill().await?;
    let left = protected(&namespace).await?;
    // Of the last fifteen, which were under way, any number took effect.
    ensure!((1..=50).contains(&left), "{left} of 60 objects are left");
    let status = process.spawn(&["drain"])?.wait().await?;
    ensure!(status.success(), "{status}: {}", process.log());
    assert_eq!(protected(&namespace).await?, 0);
    drop(process);

    // A replica that is still ending would protect the objects again, if it got the Lease from the drain.
    let mut replica = OwnProcess::start_replica(program, proxy.address, &settings, &namespace.name)?;
    replica.stop().await?;
    let status = replica.spawn(&["drain"])?.wait().await?;
    ensure!(status.success(), "{status}: {}", replica.log());
    let lease = namespace.api::<Lease>().get(BACKUPS.name()).await?;
    let holder = lease.spec.and_then(|lease| lease.holder_identity).unwrap_or_default();
    ensure!(!holder.is_empty(), "the drain has given the Lease back");
    Ok(())
}
