//! Each restart is carried out once, whatever happens to its child, its status or its neighbours.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicReplicaSet, command::SUCCEEDED};
use e2e::{
    COMMANDED, Cluster, WAIT_TIMEOUT,
    commands::{self, condition_of, queue_restarts, restart, until_restart_outcome, until_restarted},
    condition, deployment, eventually, orphan_pods, uids, until_the_garbage_collector_knows_sets,
};
use jiff::{SignedDuration, Timestamp};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

type Restart = BasicDeploymentRestart;

#[tokio::test]
async fn a_child_that_is_deleted_during_a_restart_is_not_restarted_once_more() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("proof").await?;
    let web = commands::ready(&namespace, 2).await?;
    // So that the restart is not finished before the child is deleted.
    namespace.merge::<BasicDeployment>("web", commands::never_ready()).await?;
    let command = namespace.create(&restart(&web, "again")).await?;
    until_restart_outcome(&namespace, "again", "Unknown", "Running").await;
    let before = namespace.api::<BasicReplicaSet>().get("web").await?;
    namespace.delete::<BasicReplicaSet>("web").await?;
    let is_another = |set: &BasicReplicaSet| set.uid() != before.uid();
    let fresh = namespace.until("web", "is another child", is_another).await;

    let good = deployment("web", 2).spec.parameters;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": good}})).await?;
    until_restarted(&namespace, "again").await;
    let after = namespace.until_set_ready("web").await;
    assert_eq!(after.uid(), fresh.uid());
    let asked = command.creation_timestamp().context("creation time")?.0.to_string();
    assert_eq!(after.spec.restarted_at, Some(asked), "it was made as new as the restart asks for");
    assert_eq!(
        after.metadata.generation,
        Some(2),
        "it was made, given an image, and replaced its fresh pods"
    );
    Ok(())
}

#[tokio::test]
async fn a_finished_restart_whose_status_is_wiped_is_not_run_again() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("wiped").await?;
    let web = commands::ready(&namespace, 2).await?;
    for name in ["first", "second"] {
        let made = namespace.create(&restart(&web, name)).await?;
        until_restarted(&namespace, name).await;
        let asked = made.creation_timestamp().context("creation time")?.0;
        let is_over =
            async || (Timestamp::now() >= asked + SignedDuration::from_secs(1)).then_some(()).ok_or(asked);
        eventually("the second is over", WAIT_TIMEOUT, is_over).await;
    }
    let child = namespace.until_set_ready("web").await;
    let pods = namespace.until_ready_pods(2).await;

    let restarts: Api<Restart> = namespace.api();
    let wiped = json!([{"op": "replace", "path": "/status", "value": {}}]);
    let wiped = Patch::Json::<()>(serde_json::from_value(wiped)?);
    for name in ["first", "second"] {
        restarts.patch_status(name, &PatchParams::default(), &wiped).await?;
    }
    for name in ["first", "second"] {
        until_restarted(&namespace, name).await;
    }
    let still = namespace.until_set_ready("web").await;
    assert_eq!(still.metadata.generation, child.metadata.generation, "the child was changed");
    assert_eq!(still.spec.restarted_at, child.spec.restarted_at);
    assert_eq!(uids(&namespace.until_ready_pods(2).await), uids(&pods));
    Ok(())
}

#[tokio::test]
async fn restarts_of_one_second_replace_the_pods_once_and_each_is_complete() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("together").await?;
    let web = commands::ready(&namespace, 2).await?;
    let child = namespace.until_set_ready("web").await;
    let commands = queue_restarts(&namespace, &web, 8).await?;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"paused": false}})).await?;
    let mut seconds = BTreeSet::new();
    for command in &commands {
        let ended = until_restarted(&namespace, &command.name_any()).await;
        let message = &condition_of(&ended, SUCCEEDED).context("Succeeded")?.message;
        assert_eq!(message, "all replicas are new and serving");
        seconds.insert(ended.creation_timestamp());
    }
    let after = namespace.until_set_ready("web").await;
    let changed = after.metadata.generation.unwrap_or(0) - child.metadata.generation.unwrap_or(0);
    assert_eq!(usize::try_from(changed)?, seconds.len());
    Ok(())
}

#[tokio::test]
async fn a_restart_token_only_increases_and_one_that_is_taken_away_replaces_nothing() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("tokens").await?;
    commands::ready(&namespace, 2).await?;
    let token = async |token: Option<&str>| {
        namespace.merge::<BasicDeployment>("web", json!({"spec": {"restartedAt": token}})).await
    };
    token(Some("2026-01-02T00:00:00Z")).await?;
    let is_handed = |set: &BasicReplicaSet| set.spec.restarted_at.as_deref() == Some("2026-01-02T00:00:00Z");
    namespace.until("web", "has the token", is_handed).await;
    let child = namespace.until_set_ready("web").await;
    let pods = namespace.until_ready_pods(2).await;
    // As a text, the last one is the greatest.
    for refused in ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00+00:00", "by hand", "2026-01-02T00:00:0Z"] {
        assert!(token(Some(refused)).await.is_err(), "{refused}");
    }
    token(None).await?;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"replicas": 3}})).await?;
    let more = namespace.until_ready_pods(3).await;
    assert!(uids(&more).is_superset(&uids(&pods)), "a pod was replaced");
    let after = namespace.until_set_ready("web").await;
    assert_eq!(after.spec.restarted_at, child.spec.restarted_at);

    token(Some("9999-12-31T00:00:00Z")).await?;
    let is_told = |web: &BasicDeployment| {
        let status = web.status.as_ref();
        let blocked = status.and_then(|status| condition(&status.conditions, "RestartBlocked"));
        blocked.is_some_and(|blocked| blocked.reason == "TokenInFuture")
    };
    let web = namespace.until("web", "tells the future", is_told).await;
    namespace.create(&restart(&web, "vain")).await?;
    until_restart_outcome(&namespace, "vain", "False", "TokenInFuture").await;
    Ok(())
}

#[tokio::test]
async fn a_set_that_is_made_anew_after_a_restart_adopts_its_pods() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("lasts").await?;
    let gone = until_the_garbage_collector_knows_sets(&namespace).await?;
    let web = commands::ready(&namespace, 2).await?;
    namespace.create(&restart(&web, "again")).await?;
    until_restarted(&namespace, "again").await;
    // The token outlives the command.
    namespace.delete::<Restart>("again").await?;
    let pods = namespace.until_ready_pods(2).await;
    let before = namespace.until_set_ready("web").await;
    orphan_pods(&namespace, &gone).await?;
    namespace.until("web", "is another set", |set: &BasicReplicaSet| set.uid() != before.uid()).await;
    let after = namespace.until_set_ready("web").await;
    assert_eq!(after.spec.restarted_at, before.spec.restarted_at);
    assert_eq!(uids(&namespace.until_ready_pods(2).await), uids(&pods), "a pod was doubled or replaced");
    Ok(())
}
