//! Two replicas: one acts, one stands by, and evictions never take both.

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeploymentRestart, BasicDeploymentRestartSpec, TargetRef};
use e2e::{
    CONTROLLERS, Cluster, Controller, GROUP_VERSION, Namespace, REAPER, Release, WAIT_TIMEOUT, alive,
    eventually, is_ready, kubectl, names, protect,
};
use futures::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams},
    core::Status,
};
use serde_json::json;

const NAMESPACE: &str = "catena-system";

fn api<K>(cluster: &Cluster) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(cluster.client.clone(), NAMESPACE)
}

/// Evicts a pod once, as a drain does; a refusal now does not mean a refusal in a second.
async fn evict(pod: &str) -> Result<kube::Result<Status>> {
    let mut config = Config::infer().await?;
    config.default_retry = false;
    let pods = Api::<Pod>::namespaced(Client::try_from(config)?, NAMESPACE);
    Ok(pods.evict(pod, &EvictParams::default()).await)
}

async fn until_both_are_ready(cluster: &Cluster) -> Result<Vec<Pod>> {
    // Otherwise one of the two might be a pod that is terminating.
    let deployment = format!("deployment/{}", REAPER.name());
    kubectl(&["rollout", "status", &deployment, "--namespace", NAMESPACE, "--timeout=120s"]).await?;
    let of_reaper = ListParams::default().labels(&format!("app.kubernetes.io/name={}", REAPER.name()));
    let both = eventually("both replicas are ready", 2 * WAIT_TIMEOUT, async || {
        let pods = api::<Pod>(cluster).list(&of_reaper).await.map_err(|error| error.to_string())?;
        let pods = alive(pods.items);
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        if ready == 2 && pods.len() == 2 {
            Ok(pods)
        } else {
            Err(format!("{ready} of {} are ready", pods.len()))
        }
    })
    .await;
    Ok(both)
}

/// Waits until such a pod holds the Lease, and returns its name.
async fn until_held_by(cluster: &Cluster, such: impl Fn(&str) -> bool) -> String {
    eventually("the Lease has its holder", WAIT_TIMEOUT, async || {
        let lease = api::<Lease>(cluster).get(REAPER.name()).await.map_err(|error| error.to_string())?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
        if such(&holder) { Ok(holder) } else { Err(holder) }
    })
    .await
}

async fn until_one_may_go(cluster: &Cluster) {
    eventually("the budget allows one eviction", WAIT_TIMEOUT, async || {
        let budget = api::<PodDisruptionBudget>(cluster).get(REAPER.name()).await;
        let status = budget.map_err(|error| error.to_string())?.status.unwrap_or_default();
        if status.disruptions_allowed == Some(1) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

/// A finished command that may be reaped immediately.
async fn finished_command(namespace: &Namespace, name: &str) -> Result<()> {
    let spec = BasicDeploymentRestartSpec {
        target_ref: TargetRef { name: "nothing".into(), namespace: None },
        ttl_seconds_after_finished: Some(0),
        ..BasicDeploymentRestartSpec::default()
    };
    namespace.create(&BasicDeploymentRestart::new(name, spec)).await?;
    let now = Timestamp::now();
    let succeeded = json!({
        "type": "Succeeded", "status": "True", "reason": "Restarted", "message": "", "lastTransitionTime": now,
    });
    let status = json!({
        "apiVersion": GROUP_VERSION, "kind": "BasicDeploymentRestart", "metadata": {"name": name},
        "status": {"completionTime": now, "conditions": [succeeded]},
    });
    let params = PatchParams::apply("e2e").force();
    namespace.api::<BasicDeploymentRestart>().patch_status(name, &params, &Patch::Apply(status)).await?;
    Ok(())
}

#[tokio::test]
async fn a_budget_lets_one_replica_go_at_a_time_and_another_takes_over() -> Result<()> {
    let cluster = Cluster::changing(&[REAPER]).await?;
    let values = json!({"replicas": 2, "podDisruptionBudget": {"enabled": true}});
    let release = Release::upgrade(&cluster, REAPER, &values).await?;
    let pods = until_both_are_ready(&cluster).await?;
    until_one_may_go(&cluster).await;

    let mut others = names(&pods);
    let acts = until_held_by(&cluster, |holder| others.contains(holder)).await;
    others.remove(&acts);
    let stands_by = others.first().context("there is no other")?;
    evict(&acts).await??;
    let refused = evict(stands_by).await?;
    ensure!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 429), "{refused:?}");
    until_held_by(&cluster, |holder| !holder.is_empty() && holder != acts).await;
    let namespace = cluster.namespace("takeover").await?;
    finished_command(&namespace, "done").await?;
    namespace.until_gone::<BasicDeploymentRestart>("done").await;

    // Once the first one has been replaced, the second may be evicted too.
    until_both_are_ready(&cluster).await?;
    until_one_may_go(&cluster).await;
    evict(stands_by).await??;
    until_both_are_ready(&cluster).await?;

    release.restore().await?;
    REAPER.until_ready(&cluster).await;
    Ok(())
}

#[tokio::test]
async fn times_in_its_lease_that_no_client_reads_keep_no_controller_from_leading() -> Result<()> {
    let cluster = Cluster::changing(&[REAPER]).await?;
    let before = REAPER.until_ready(&cluster).await;
    until_held_by(&cluster, |holder| !holder.is_empty()).await;
    // The API server accepts all of them.
    let patch = json!([
        {"op": "replace", "path": "/metadata/managedFields/0/time", "value": "9999-12-31T23:59:59Z"},
        {"op": "replace", "path": "/spec/renewTime", "value": "9999-12-31T23:59:59.000000Z"},
        {"op": "replace", "path": "/spec/acquireTime", "value": "9999-12-31T23:59:59.000000Z"},
    ]);
    let patch = format!("--patch={patch}");
    let lease = ["lease", REAPER.name(), "--namespace", NAMESPACE];
    kubectl(&[&["patch", "--type=json", "--field-manager=other", &patch], &lease[..]].concat()).await?;
    before.kill()?;

    let namespace = cluster.namespace("odd-lease").await?;
    finished_command(&namespace, "done").await?;
    namespace.until_gone::<BasicDeploymentRestart>("done").await;
    let after = REAPER.until_ready(&cluster).await;
    ensure!(after.pid != before.pid, "it was not restarted");
    let renewed = kubectl(&[&["get", "--output=jsonpath={.spec.renewTime}"], &lease[..]].concat()).await?;
    ensure!(!renewed.starts_with("9999"), "the Lease was not renewed");
    // Not even this client can decode these times; the Lease is created again.
    kubectl(&[&["delete"], &lease[..]].concat()).await?;
    until_held_by(&cluster, |holder| !holder.is_empty()).await;
    ensure!(REAPER.until_ready(&cluster).await.pid == after.pid, "it was restarted");
    Ok(())
}

#[tokio::test]
async fn a_budget_for_one_replica_is_refused_with_what_to_do() -> Result<()> {
    let cluster = Cluster::changing(&[REAPER]).await?;
    let before = Release::revision(REAPER).await?;
    let refused = Release::set(REAPER, &json!({"podDisruptionBudget": {"enabled": true}})).await;
    let said = refused.err().context("it was taken")?.to_string();
    ensure!(said.contains("set replicas=2"), "{said}");
    assert_eq!(Release::revision(REAPER).await?, before);
    drop(cluster);
    Ok(())
}

/// Deletes the Lease of a controller, and waits until its holder has created it again.
async fn outlives_its_lease(cluster: &Cluster, controller: Controller) -> Result<()> {
    let leases = api::<Lease>(cluster);
    let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    let before = leases.get(controller.name()).await?;
    leases.delete(controller.name(), &DeleteParams::default()).await?;
    let what = format!("the Lease of {} is there again", controller.name());
    let again = eventually(&what, WAIT_TIMEOUT, async || {
        let lease = leases.get(controller.name()).await.map_err(|error| error.to_string())?;
        if lease.metadata.uid == before.metadata.uid {
            Err("it is the old one".to_owned())
        } else {
            Ok(lease)
        }
    })
    .await;
    ensure!(holder(&again) == holder(&before), "{:?} was followed by {:?}", holder(&before), holder(&again));
    ensure!(again.metadata.labels == before.metadata.labels, "it is no part of the release: {again:?}");
    Ok(())
}

#[tokio::test]
async fn a_lease_that_somebody_deleted_is_made_again_by_its_holder() -> Result<()> {
    let cluster = Cluster::shared().await?;
    // So that no other test has to upgrade the release meanwhile, which would make the Lease as well.
    protect(&cluster).await?;
    for controller in CONTROLLERS {
        controller.until_ready(&cluster).await;
    }
    try_join_all(CONTROLLERS.map(|controller| outlives_its_lease(&cluster, controller))).await?;
    Ok(())
}
