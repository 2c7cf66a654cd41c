//! What a child reports, or does not report, decides what its BasicDeployment tells. Nobody runs these children: the tests write
//! their statuses.

use std::{slice, time::Duration};

use anyhow::Result;
use catena_api::BasicDeployment;
use e2e::{
    CHAIN, Cluster, DEPLOYMENTS, Namespace, Release, WAIT_TIMEOUT, condition, deployment, eventually,
    open_kind,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};
use tokio::time::interval;

use crate::exchanges_children::values;

/// A kind of children that nobody runs, with this contract, and the release whose template `crowd` renders it.
async fn crowds(
    cluster: &Cluster,
    namespace: &Namespace,
    contract: Value,
) -> Result<(Release, Api<DynamicObject>)> {
    let definitions = cluster.all::<CustomResourceDefinition>();
    let group = format!("{}.example.com", namespace.name);
    let api_version = format!("{group}/v1");
    let mut definition = open_kind(&group, "Crowd", &["v1"]);
    definition["metadata"] = namespace.owns(&format!("crowds.{group}"));
    definitions.create(&PostParams::default(), &serde_json::from_value(definition)?).await?;
    let crowd =
        json!({"apiVersion": api_version, "kind": "Crowd", "resource": "crowds", "contract": contract});
    let mut values = values(&[], slice::from_ref(&crowd))?;
    values["templates"]["crowd"] =
        format!("{{apiVersion: {api_version}, kind: Crowd, metadata: {{name: {{{{ name }}}}}}}}").into();
    let release = Release::upgrade(cluster, DEPLOYMENTS, &values).await?;
    let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(&group, "v1", "Crowd"), "crowds");
    Ok((release, namespace.api_of(&kind)))
}

/// A `BasicDeployment` of a child that nobody runs.
fn of_crowd(replicas: i32, progress_deadline_seconds: i32) -> BasicDeployment {
    let mut web = deployment("web", replicas);
    (web.spec.template, web.spec.progress_deadline_seconds) = ("crowd".into(), progress_deadline_seconds);
    web
}

/// Writes the status of the child, as a report on its present spec. Without a subresource, that is another generation.
async fn report(crowds: &Api<DynamicObject>, mut status: Value) -> Result<()> {
    let generation = crowds.get("web").await?.metadata.generation.unwrap_or_default();
    status["observedGeneration"] = (generation + 1).into();
    crowds.patch("web", &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
    Ok(())
}

async fn until_created(crowds: &Api<DynamicObject>) {
    eventually("the child is created", WAIT_TIMEOUT, async || match crowds.get_opt("web").await {
        Ok(Some(_)) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

fn progresses_with(web: &BasicDeployment, reason: &str) -> bool {
    let progressing = web.status.as_ref().and_then(|status| condition(&status.conditions, "Progressing"));
    progressing.is_some_and(|told| told.reason == reason)
}

#[tokio::test]
async fn a_child_that_says_nothing_is_told() -> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("silent").await?;
    let (release, _) = crowds(&cluster, &namespace, json!({})).await?;

    namespace.create(&of_crowd(1, 2)).await?;
    let is_named = |web: &BasicDeployment| {
        let blocker = web.status.as_ref().and_then(|status| status.blocked_by.as_ref());
        blocker.is_some_and(|blocker| blocker.reason == "NotReported")
    };
    // It takes a minute.
    namespace.until_within(2 * WAIT_TIMEOUT, "web", "names the silent child", is_named).await;
    let note = namespace.until_event("web", "ContractBroken").await;
    assert!(note.contains("has never reported contract.observedGeneration"), "{note}");
    namespace.delete::<BasicDeployment>("web").await?;
    release.restore().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    Ok(())
}

#[tokio::test]
async fn an_old_replica_that_is_ready_now_and_then_keeps_no_rollout_from_its_deadline() -> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("toggles").await?;
    let (release, crowds) = crowds(&cluster, &namespace, json!({})).await?;

    namespace.create(&of_crowd(3, 5)).await?;
    until_created(&crowds).await;
    let toggling = async {
        let mut ticks = interval(Duration::from_secs(1));
        for active in [2, 3].into_iter().cycle() {
            ticks.tick().await;
            report(&crowds, json!({"active": active, "updated": 1})).await?;
        }
        anyhow::Ok(())
    };
    let stalls = |web: &BasicDeployment| progresses_with(web, "ProgressDeadlineExceeded");
    tokio::select! {
        _ = namespace.until("web", "stalls", stalls) => {}
        ended = toggling => ended?,
    }
    namespace.delete::<BasicDeployment>("web").await?;
    release.restore().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    Ok(())
}

#[tokio::test]
async fn a_paused_child_is_named_and_is_ready_once_all_its_replicas_are_new() -> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("paused").await?;
    let (release, crowds) = crowds(&cluster, &namespace, json!({"paused": "status.paused"})).await?;

    namespace.create(&of_crowd(3, 600)).await?;
    until_created(&crowds).await;
    let pause = json!({"reason": "StepReached", "message": "somebody has to go on"});
    report(&crowds, json!({"active": 3, "updated": 1, "paused": pause})).await?;
    let is_named = |web: &BasicDeployment| {
        let blocker = web.status.as_ref().and_then(|status| status.blocked_by.as_ref());
        let names_it =
            blocker.is_some_and(|blocker| blocker.kind == "Crowd" && blocker.reason == "StepReached");
        names_it && progresses_with(web, "ChildPaused")
    };
    namespace.until("web", "names the pause", is_named).await;
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Settled", "message": ""}]);
    report(&crowds, json!({"active": 3, "updated": 3, "paused": pause, "conditions": ready})).await?;
    namespace.until_ready("web").await;
    namespace.delete::<BasicDeployment>("web").await?;
    release.restore().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    Ok(())
}
