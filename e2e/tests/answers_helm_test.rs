//! `helm test` tests whether the running controller is healthy and has taken its settings, by asking it over the network.

use anyhow::{Context, Result, ensure};
use e2e::{
    BACKUP_BY, BACKUPS, CONTROLLERS, Cluster, Controller, REAPER, Release, WAIT_TIMEOUT, eventually, helm,
    is_protected, kubectl, needs, protect, protecting, until_nothing_is_protected,
};
use futures::future::try_join_all;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace as CoreNamespace},
    events::v1::Event,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;

/// The objects that `helm test` creates for these controllers.
async fn leftovers(of: &[Controller]) -> Result<String> {
    let names: Vec<_> = of.iter().map(|controller| controller.name()).collect();
    let selector = format!("--selector=catena.dev/hook-of in ({})", names.join(","));
    kubectl(&["get", "pods,services", "--namespace=catena-system", &selector, "--output=name"]).await
}

#[tokio::test]
async fn every_controller_that_is_ready_passes_and_nothing_is_left() -> Result<()> {
    let cluster = Cluster::shared().await?;
    // At its end, `helm test` writes back the release that it has read, over an upgrade that others start meanwhile.
    protect(&cluster).await?;
    let tests = CONTROLLERS.map(async |controller| {
        controller.until_ready(&cluster).await;
        // A kubelet delivers the settings of an upgrade in about a minute.
        helm(&["test", controller.name(), "--timeout=180s"]).await
    });
    try_join_all(tests).await?;
    assert_eq!(leftovers(&CONTROLLERS).await?, "");
    Ok(())
}

#[tokio::test]
async fn a_controller_that_hangs_fails_until_it_goes_on() -> Result<()> {
    needs!(Processes);
    let cluster = Cluster::changing(&[REAPER]).await?;
    let process = REAPER.until_ready(&cluster).await;
    let frozen = process.freeze()?;
    let said = helm(&["test", REAPER.name(), "--timeout=180s"]).await.err().context("it passed")?;
    drop(frozen);
    // The test ends by itself, before helm's own limit.
    ensure!(format!("{said:#}").contains("command-reaper-test failed"), "{said:#}");
    ensure!(leftovers(&[REAPER]).await?.contains("pod/command-reaper-test"), "its pod is there to be read");

    REAPER.until_ready(&cluster).await;
    helm(&["test", REAPER.name(), "--timeout=180s"]).await?;
    assert_eq!(leftovers(&[REAPER]).await?, "");
    Ok(())
}

/// Waits for an Event about the settings of a controller, and returns its note.
async fn until_told(cluster: &Cluster, controller: Controller, reason: &str, part: &str) -> String {
    let events = Api::<Event>::namespaced(cluster.client.clone(), "catena-system");
    eventually(&format!("{reason} is told"), WAIT_TIMEOUT, async || {
        let events = events.list(&ListParams::default()).await.map_err(|error| vec![error.to_string()])?;
        let about = events.items.into_iter().filter(|event| {
            event.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some(controller.name())
        });
        let told: Vec<_> = about.map(|event| (event.reason, event.note.unwrap_or_default())).collect();
        let is_it =
            |(said, note): &&(Option<String>, String)| said.as_deref() == Some(reason) && note.contains(part);
        let found = told.iter().find(is_it).map(|(_, note)| note.clone());
        found.ok_or_else(|| told.into_iter().map(|(_, note)| note).collect::<Vec<_>>())
    })
    .await
}

#[tokio::test]
async fn refused_settings_fail_at_once_with_their_mistake_and_good_ones_are_waited_for() -> Result<()> {
    let cluster = Cluster::changing(&[REAPER]).await?;
    let entry = json!({
        "id": "jobs", "group": "batch", "version": "v1", "resource": "jobs", "kind": "Job",
        "selector": "e2e.catena.dev/one-shot=true",
        "expire": {"finishedAt": "object.status.", "ttlSeconds": "null"},
    });
    let release = Release::upgrade(&cluster, REAPER, &json!({"kinds": [entry]})).await?;
    let said = helm(&["test", REAPER.name(), "--timeout=180s"]).await;
    ensure!(said.is_err(), "it passed");
    let note = until_told(&cluster, REAPER, "SettingsRefused", "finishedAt").await;
    ensure!(note.contains("keeps the previous settings"), "{note}");
    let process = REAPER.until_ready(&cluster).await;
    let (code, page) = process.page("settings").await?;
    ensure!(code == 422 && page.contains("finishedAt"), "{code}: {page}");
    let metrics = process.metrics().await?;
    ensure!(metrics.contains("catena_settings_kept_out 1"), "{metrics}");

    release.restore().await?;
    helm(&["test", REAPER.name(), "--timeout=180s"]).await?;
    // The settings of the release were in force all the time; the refused ones are forgotten at the next look.
    eventually("no other settings are known", WAIT_TIMEOUT, async || match process.page("settings").await {
        Ok((200, _)) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    ensure!(process.metrics().await?.contains("catena_settings_kept_out 0"));
    Ok(())
}

#[tokio::test]
async fn settings_whose_rights_a_failed_upgrade_did_not_bring_are_not_taken_before_it_is_repeated()
-> Result<()> {
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    protect(&cluster).await?;
    // These have to be in force before others come.
    helm(&["test", BACKUPS.name(), "--timeout=180s"]).await?;
    let namespace = cluster.namespace("half").await?;
    let place = format!("{}-backups", namespace.name);
    let mut values = protecting()?;
    // The other entries bring the right to create Secrets anywhere, but not ConfigMaps.
    let mut nowhere = values["backups"]["manifest"].clone();
    let template =
        nowhere["template"].as_str().unwrap_or_default().replace("kind: Secret", "kind: ConfigMap");
    nowhere["template"] = template.replace("type: Opaque\n", "").replace("stringData:", "data:").into();
    for (field, value) in [("kind", "ConfigMap"), ("resource", "configmaps"), ("namespace", place.as_str())] {
        nowhere[field] = value.into();
    }
    values["backups"]["nowhere"] = nowhere;
    values["kinds"]["nowhere"] = values["kinds"]["by-manifest"].clone();
    values["kinds"]["nowhere"]["backup"] = "nowhere".into();
    values["kinds"]["nowhere"]["selector"]["matchLabels"][BACKUP_BY] = "nowhere".into();
    let failed = Release::set(BACKUPS, &values).await;
    ensure!(failed.is_err(), "the upgrade succeeded, though the namespace of its Role does not exist");
    until_told(&cluster, BACKUPS, "SettingsWaitForRights", &format!("in the namespace {place}")).await;

    // The former settings are whole: they protect, back up, and know nothing of the new entry.
    let map = |name: &str, by: &str| {
        serde_json::from_value::<ConfigMap>(json!({"metadata": {"name": name, "labels": {BACKUP_BY: by}}}))
    };
    namespace.create(&map("new", "nowhere")?).await?;
    namespace.create(&map("old", "manifest")?).await?;
    namespace.until("old", "is protected", |map: &ConfigMap| is_protected(map)).await;
    namespace.delete::<ConfigMap>("old").await?;
    namespace.until_gone::<ConfigMap>("old").await;
    ensure!(!is_protected(&namespace.api::<ConfigMap>().get("new").await?), "the new entry is in force");

    let namespaces = Api::<CoreNamespace>::all(cluster.client.clone());
    let created = serde_json::from_value(json!({"metadata": {"name": place}}))?;
    namespaces.create(&PostParams::default(), &created).await?;
    Release::set(BACKUPS, &values).await?;
    helm(&["test", BACKUPS.name(), "--timeout=180s"]).await?;
    namespace.until("new", "is protected", |map: &ConfigMap| is_protected(map)).await;
    namespace.delete::<ConfigMap>("new").await?;
    namespace.until_gone::<ConfigMap>("new").await;
    until_nothing_is_protected(&cluster).await;
    Release::set(BACKUPS, &protecting()?).await?;
    namespaces.delete(&place, &DeleteParams::default()).await?;
    Ok(())
}
