//! `kubectl describe` of a BasicDeployment tells each write to its child that somebody asked for by one Event, and nothing in
//! steady state.

use anyhow::{Result, ensure};
use catena_api::{BasicDeployment, BasicDeploymentRollback};
use e2e::{
    COMMANDED, Cluster, DEPLOYMENTS, Namespace, Release, WAIT_TIMEOUT, another_image, commands, deployment,
    eventually, kubectl,
};
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use serde_json::json;

/// The Events of type Normal about a BasicDeployment, the oldest first.
async fn told(namespace: &Namespace, name: &str) -> kube::Result<Vec<Event>> {
    let mut events: Vec<Event> = namespace.api().list(&ListParams::default()).await?.items;
    events.retain(|event| {
        let about = event.regarding.as_ref().map(|about| (about.kind.as_deref(), about.name.as_deref()));
        about == Some((Some("BasicDeployment"), Some(name))) && event.type_.as_deref() == Some("Normal")
    });
    events.sort_by_key(|event| event.event_time.clone());
    Ok(events)
}

fn reasons(events: &[Event]) -> Vec<&str> {
    events.iter().filter_map(|event| event.reason.as_deref()).collect()
}

/// Waits until exactly these Events have been told since `before`, and returns the number of all.
async fn until_told(namespace: &Namespace, before: usize, expected: &[&str]) -> usize {
    eventually(&format!("{expected:?} is told"), WAIT_TIMEOUT, async || {
        let events = told(namespace, "web").await.map_err(|error| vec![error.to_string()])?;
        let new = events.get(before..).unwrap_or_default();
        let notes = || new.iter().map(|event| format!("{:?}: {:?}", event.reason, event.note)).collect();
        if reasons(new) == expected { Ok(events.len()) } else { Err::<_, Vec<String>>(notes()) }
    })
    .await
}

#[tokio::test]
async fn creation_change_scale_restart_and_rollback_are_told_once_each() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("told").await?;
    let web = namespace.create(&deployment("web", 2)).await?;
    namespace.until_ready("web").await;
    let all = until_told(&namespace, 0, &["ChildCreated"]).await;

    namespace.merge::<BasicDeployment>("web", json!({"spec": {"replicas": 3}})).await?;
    let all = until_told(&namespace, all, &["ChildScaled"]).await;
    let image = |image: &str| json!({"spec": {"parameters": {"image": image}}});
    namespace.merge::<BasicDeployment>("web", image(&another_image())).await?;
    let all = until_told(&namespace, all, &["ChildUpdated"]).await;
    namespace.create(&commands::restart(&web, "again")).await?;
    let all = until_told(&namespace, all, &["ChildRestarted"]).await;
    namespace.create(&commands::rollback(&web, "back", 0)).await?;
    until_told(&namespace, all, &["ChildUpdated"]).await;
    // Until its end, the rollback might be told a second time.
    commands::until_outcome::<BasicDeploymentRollback>(&namespace, "back", "True", "Complete").await;
    namespace.until_ready("web").await;
    until_told(&namespace, all, &["ChildUpdated"]).await;

    let described = kubectl(&["describe", "basicdeployment", "web", "--namespace", &namespace.name]).await?;
    ensure!(described.contains("scaled BasicReplicaSet web from 2 to 3 replicas"), "{described}");
    ensure!(described.contains("restarted BasicReplicaSet web: spec.restartedAt is 2"), "{described}");
    Ok(())
}

/// Creates one BasicDeployment after another until one becomes ready with or without Events of type Normal: the settings
/// are read again within about a minute.
async fn until_silence_is(namespace: &Namespace, silent: bool) {
    let mut number = 0;
    eventually(
        &format!("a BasicDeployment becomes ready; in silence: {silent}"),
        3 * WAIT_TIMEOUT,
        async || {
            number += 1;
            let name = format!("web-{silent}-{number}");
            namespace.create(&deployment(&name, 1)).await.map_err(|error| error.to_string())?;
            namespace.until_ready(&name).await;
            // Its readiness may be seen before the Event of its creation is published; the next one shows it.
            let events = told(namespace, &name).await.map_err(|error| error.to_string())?;
            if events.is_empty() == silent { Ok(()) } else { Err(format!("{:?}", reasons(&events))) }
        },
    )
    .await;
}

#[tokio::test]
async fn a_value_turns_the_normal_ones_off_and_on_again() -> Result<()> {
    let cluster = Cluster::changing_one_of(&COMMANDED, DEPLOYMENTS).await?;
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &json!({"events": {"normal": false}})).await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    let namespace = cluster.namespace("silent").await?;
    until_silence_is(&namespace, true).await;
    release.restore().await?;
    // The next test finds the settings as they were.
    until_silence_is(&namespace, false).await;
    Ok(())
}
