//! Each restart is carried out once, whatever happens to its child, its status or its neighbours.

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicReplicaSet, command::SUCCEEDED};
use e2e::{
    COMMANDED, Cluster, WAIT_TIMEOUT,
    commands::{self, condition_of, restart, until_restart_outcome, until_restarted},
    deployment, eventually, uids,
};
use futures::future::try_join_all;
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
async fn restarts_of_one_second_say_that_they_were_served_together() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("together").await?;
    let web = commands::ready(&namespace, 2).await?;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"paused": true}})).await?;
    let commands: Vec<_> = (0..8).map(|number| restart(&web, &format!("again-{number}"))).collect();
    try_join_all(commands.iter().map(|command| namespace.create(command))).await?;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"paused": false}})).await?;
    let mut ended = Vec::new();
    for command in &commands {
        ended.push(until_restarted(&namespace, &command.name_any()).await);
    }
    for one in &ended {
        let message = &condition_of(one, SUCCEEDED).context("Succeeded")?.message;
        let of_its_second = |other: &&Restart| other.creation_timestamp() == one.creation_timestamp();
        let is_alone = ended.iter().filter(of_its_second).count() == 1;
        assert_eq!(message.contains("together"), !is_alone, "{}: {message}", one.name_any());
    }
    Ok(())
}
