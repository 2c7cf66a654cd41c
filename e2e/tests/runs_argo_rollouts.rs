//! A BasicDeployment on the real controller of Argo Rollouts, which is built from source, so that it runs only on request:
//! `cargo xtask e2e --on local --only runs_argo_rollouts -- --include-ignored`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeployment, BasicReplicaSet};
use e2e::{
    ArgoRollouts, DEPLOYMENTS, GROUP_VERSION, Namespace, Recording, WAIT_TIMEOUT, another_image, checkout,
    child_example, commands, condition, deployment, eventually, image, shipped_template, uids,
};
use k8s_openapi::api::{core::v1::Pod, events::v1::Event};
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};

use crate::{
    checks_the_contract_live::{File, check},
    exchanges_children::{change, until_on},
    runs_any_child::{ensure_never_ready, until_serving},
};

/// The values of the example, with a template that pauses half-way, and one of another kind.
fn values() -> Result<Value> {
    let mut values = child_example("rollout")?;
    let rollout = values["templates"]["default"].as_str().context("a template")?;
    let pauses = rollout.replace("canary: {}", "canary: {steps: [{setWeight: 50}, {pause: {}}]}");
    values["templates"]["pauses"] = pauses.into();
    values["templates"]["set"] = shipped_template(DEPLOYMENTS)?.into();
    let set = json!({"apiVersion": GROUP_VERSION, "kind": "BasicReplicaSet", "resource": "basicreplicasets"});
    values["children"].as_array_mut().context("a list")?.push(set);
    Ok(values)
}

fn rollouts(namespace: &Namespace) -> Api<DynamicObject> {
    namespace.api_of(&ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "Rollout")))
}

async fn until_rollout(namespace: &Namespace, name: &str, what: &str, is: impl Fn(&Value) -> bool) {
    let rollouts = rollouts(namespace);
    eventually(&format!("{name} {what}"), 2 * WAIT_TIMEOUT, async || {
        let rollout = rollouts.get(name).await.map_err(|error| error.to_string())?;
        if is(&rollout.data) { Ok(()) } else { Err(e2e::yaml(&rollout)) }
    })
    .await;
}

/// Asks for something in the status of the Rollout, as `kubectl argo rollouts` does.
async fn ask(namespace: &Namespace, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"status": status}));
    rollouts(namespace).patch_status("web", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The check passes the shipped mapping. One that trusts the restart of Argo Rollouts itself is not found out by each run: with the
/// strategy canary, it lies only if the pass after the last eviction comes before the news of that.
async fn is_seen_to_honour_the_contract() -> Result<()> {
    let values = child_example("rollout")?;
    let template = values["templates"]["default"].as_str().context("a template")?;
    let template = template.replace("{{ name }}", "web").replace("{{ parameters.image }}", &image());
    let template: Value = serde_saphyr::from_str(&template)?;
    let template = File::with("rollout", &template)?;
    let values = checkout().join("examples/children/rollout.yaml");
    let shipped = ["--values", values.to_str().context("the checkout is no text")?];
    let said = check("rollouts.argoproj.io", &template, &shipped).await?;
    ensure!(said.code == 0, "{said:?}");
    Ok(())
}

/// A restart succeeds when all pods are new and serve, and not before: not while one cannot start.
async fn restarts(namespace: &Namespace) -> Result<()> {
    let web = namespace.api::<BasicDeployment>().get("web").await?;
    for number in 0..5 {
        // Restarts of the same second are one.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let before = uids(&namespace.until_ready_pods(4).await);
        let name = format!("again-{number}");
        namespace.create(&commands::restart(&web, &name)).await?;
        commands::until_restarted(namespace, &name).await;
        let after = e2e::alive(namespace.pods().await?);
        let serving = after.iter().filter(|pod| e2e::is_ready(pod)).count();
        ensure!(after.len() == 4 && serving == 4, "{name} has succeeded while {serving} pods serve");
        ensure!(uids(&after).is_disjoint(&before), "{name} has succeeded with pods of before");
    }
    ensure_never_ready(namespace).await?;
    namespace.create(&commands::restart(&web, "stuck")).await?;
    commands::until_restart_outcome(namespace, "stuck", "Unknown", "Running").await;
    change(namespace, json!({"parameters": {"image": image()}, "progressDeadlineSeconds": 600})).await?;
    commands::until_restarted(namespace, "stuck").await;
    until_serving(namespace, 4, &image()).await;
    Ok(())
}

/// A pause keeps it from being ready until it is promoted, and an abort is told until the template is that of before.
async fn pauses_and_aborts(namespace: &Namespace) -> Result<()> {
    let is_paused = |rollout: &Value| rollout["status"]["phase"] == "Paused";
    change(namespace, json!({"template": "pauses", "parameters": {"image": another_image()}})).await?;
    until_rollout(namespace, "web", "pauses half-way", is_paused).await;
    namespace
        .until("web", "is not ready, and says by what it is paused", |web: &BasicDeployment| {
            let Some(status) = &web.status else { return false };
            let blocker = status.blocked_by.as_ref().map(|blocker| blocker.reason.as_str());
            status.observed_generation == web.metadata.generation
                && !status.ready
                && blocker == Some("RolloutPaused")
        })
        .await;
    ask(namespace, json!({"pauseConditions": null})).await?;
    until_serving(namespace, 4, &another_image()).await;

    change(namespace, json!({"parameters": {"image": image()}})).await?;
    until_rollout(namespace, "web", "pauses half-way", is_paused).await;
    ask(namespace, json!({"abort": true})).await?;
    namespace
        .until("web", "is stalled, and serves with the pods of before", |web: &BasicDeployment| {
            let Some(status) = &web.status else { return false };
            let stalled = condition(&status.conditions, "Stalled");
            stalled.is_some_and(|stalled| stalled.reason == "Degraded") && status.active == 4
        })
        .await;
    change(namespace, json!({"parameters": {"image": another_image()}})).await?;
    until_serving(namespace, 4, &another_image()).await;
    Ok(())
}

/// Its child becomes one of another kind, and a Rollout again, while it serves.
async fn is_exchanged_and_back(namespace: &Namespace) -> Result<()> {
    let recording = Recording::start(namespace).await;
    change(namespace, json!({"template": "set"})).await?;
    until_on::<BasicReplicaSet>(namespace, &[]).await?;
    let rollouts = rollouts(namespace);
    eventually("the Rollout is gone", 2 * WAIT_TIMEOUT, async || match rollouts.get_opt("web").await {
        Ok(None) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    change(namespace, json!({"template": "default"})).await?;
    namespace
        .until_within(2 * WAIT_TIMEOUT, "web", "serves through a Rollout", |web: &BasicDeployment| {
            let Some(status) = &web.status else { return false };
            let is_current = status.observed_generation == web.metadata.generation;
            let is_on = status.child.as_ref().is_some_and(|child| child.kind == "Rollout");
            is_current && status.ready && is_on
        })
        .await;
    namespace.until_collected::<BasicReplicaSet>("web").await;
    let fewest = recording.so_far().fewest_ready;
    ensure!(fewest >= 3, "only {fewest} of 4 pods served in an exchange");
    Ok(())
}

/// Without its controller, changes and a new child are written, and nothing is ready. With it again, everything is.
async fn outlives_its_controller(namespace: &Namespace, argo: &mut ArgoRollouts) -> Result<()> {
    argo.stop().await?;
    let new = image();
    change(namespace, json!({"parameters": {"image": new}})).await?;
    until_rollout(namespace, "web", "has the new image", |rollout| {
        rollout["spec"]["template"]["spec"]["containers"][0]["image"] == *new
    })
    .await;
    namespace.create(&deployment("later", 1)).await?;
    until_rollout(namespace, "later", "is there", |_| true).await;
    namespace.merge::<BasicDeployment>("later", json!({"spec": {"replicas": 2}})).await?;
    until_rollout(namespace, "later", "is scaled", |rollout| rollout["spec"]["replicas"] == 2).await;
    argo.again()?;
    for name in ["web", "later"] {
        namespace.until_ready_within(2 * WAIT_TIMEOUT, name).await;
    }
    namespace.until_ready_pods(6).await;
    let events = namespace.api::<Event>().list(&ListParams::default()).await?;
    let broken = events.iter().find(|event| event.reason.as_deref() == Some("ContractBroken"));
    ensure!(broken.is_none(), "{broken:?}");
    for name in ["web", "later"] {
        namespace.delete::<BasicDeployment>(name).await?;
    }
    namespace.until_pods("no pod is left", <[Pod]>::is_empty).await;
    Ok(())
}

mod alone {
    use e2e::{Cluster, Release};

    use super::{
        ArgoRollouts, DEPLOYMENTS, Result, change, image, is_exchanged_and_back,
        is_seen_to_honour_the_contract, json, outlives_its_controller, pauses_and_aborts, restarts,
        until_serving, values,
    };
    use crate::exchanges_children::web;

    #[tokio::test]
    #[ignore = "it builds Argo Rollouts, and takes minutes"]
    async fn a_rollout_is_a_child_that_never_lies() -> Result<()> {
        e2e::needs!(HostProcesses, Go, NoKindsOfOthers);
        let cluster = Cluster::alone().await?;
        let mut argo = ArgoRollouts::start().await?;
        is_seen_to_honour_the_contract().await?;
        let release = Release::upgrade(&cluster, DEPLOYMENTS, &values()?).await?;
        DEPLOYMENTS.until_ready(&cluster).await;
        let namespace = cluster.namespace("rollouts").await?;
        namespace.create(&web()).await?;
        for replicas in [4, 2, 4] {
            change(&namespace, json!({"replicas": replicas})).await?;
            until_serving(&namespace, replicas, &image()).await;
        }
        restarts(&namespace).await?;
        pauses_and_aborts(&namespace).await?;
        is_exchanged_and_back(&namespace).await?;
        outlives_its_controller(&namespace, &mut argo).await?;
        release.restore().await?;
        DEPLOYMENTS.until_ready(&cluster).await;
        Ok(())
    }
}
