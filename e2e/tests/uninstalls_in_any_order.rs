//! The six charts are uninstalled one after another, in any order, in the middle of work: users' objects and their
//! workloads stay, nothing of the charts is left, and every object can still be deleted.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, TargetRef};
use e2e::{
    BACKUP_BY, BACKUPS, BINDER, CONTROLLERS, Cluster, Controller, DEPLOYMENTS, Namespace, Pace, REAPER,
    REPLICA_SETS, RUNNER, Release, WAIT_TIMEOUT, deployment, eventually, is_protected, is_ready, kubectl,
    names, protecting, texts, uids, until_all_are_ready,
};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use serde_json::{Value, json};

type Order = [Controller; 6];

/// No operation of a controller may take so long that its process is killed before the end.
const AT_ONCE: Duration = Duration::from_secs(18);

/// The two worst orders: the protecting chart first, and last. Of any two charts, each precedes the other in one of them.
const WORST: [Order; 2] = [
    [BACKUPS, DEPLOYMENTS, BINDER, RUNNER, REPLICA_SETS, REAPER],
    [REAPER, REPLICA_SETS, RUNNER, BINDER, DEPLOYMENTS, BACKUPS],
];

/// One more, chosen by the number in `CATENA_SEED` or at random, but none on real nodes, where it takes a minute.
fn by_chance() -> Result<Option<Order>> {
    let seed = match std::env::var("CATENA_SEED") {
        Ok(seed) => seed.parse().context("CATENA_SEED is no number")?,
        Err(_) if std::env::var_os("CATENA_KIND").is_some() => return Ok(None),
        Err(_) => rand::random(),
    };
    println!("this order again: CATENA_SEED={seed}");
    let mut order = CONTROLLERS;
    order.shuffle(&mut StdRng::seed_from_u64(seed));
    Ok(Some(order))
}

/// Every kind that can be listed, except for Events, which no test waits for.
async fn kinds() -> Result<String> {
    let kinds = kubectl(&["api-resources", "--verbs=list,delete", "--output=name"]).await?;
    let kinds: Vec<&str> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    Ok(kinds.join(","))
}

/// All terminating objects.
async fn terminating() -> Result<String> {
    let line = "{range .items[?(@.metadata.deletionTimestamp)]}{.kind}/{.metadata.name} {end}";
    let output = format!("--output=jsonpath={line}");
    kubectl(&["get", &kinds().await?, "--all-namespaces", "--ignore-not-found", &output]).await
}

/// All objects with the name of a release, except for the definitions, which stay for their objects.
async fn of_releases() -> Result<BTreeSet<String>> {
    let names = CONTROLLERS.map(Controller::name).join(",");
    let selector = format!("--selector=app.kubernetes.io/instance in ({names})");
    let kinds = kinds().await?;
    let asked = ["get", &kinds, "--all-namespaces", "--ignore-not-found", "--output=name", &selector];
    let found = kubectl(&asked).await?;
    Ok(found.lines().filter(|name| !name.starts_with("customresourcedefinition")).map(Into::into).collect())
}

fn values(controller: Controller) -> Result<Value> {
    if controller == BACKUPS { protecting() } else { Ok(json!({})) }
}

fn restart(name: &str, target: &str) -> BasicDeploymentRestart {
    let target_ref = TargetRef { name: target.into(), namespace: None };
    BasicDeploymentRestart::new(name, BasicDeploymentRestartSpec { target_ref, ..Default::default() })
}

/// Work of each controller: finished, running and waiting.
async fn begin(namespace: &Namespace) -> Result<()> {
    let mut web = deployment("web", 2);
    web.metadata.labels = Some(texts! { BACKUP_BY => "manifest" });
    namespace.create(&web).await?;
    namespace.until_ready("web").await;
    namespace.until("web", "is protected", |web: &BasicDeployment| is_protected(web)).await;
    namespace.create(&restart("done", "web")).await?;
    namespace
        .until("done", "has ended", |done: &BasicDeploymentRestart| {
            done.status.as_ref().is_some_and(|status| status.completion_time.is_some())
        })
        .await;
    namespace.create(&restart("waiting", "nobody")).await?;

    let mut paused = deployment("paused", 1);
    paused.spec.paused = true;
    namespace.create(&paused).await?;
    namespace.create(&restart("queued", "paused")).await?;
    namespace
        .until("queued", "is bound", |queued: &BasicDeploymentRestart| !queued.owner_references().is_empty())
        .await;

    let held = json!({"metadata": {"name": "held", "labels": {BACKUP_BY: "fails"}}});
    namespace.create::<ConfigMap>(&serde_json::from_value(held)?).await?;
    namespace.until("held", "is protected", |map: &ConfigMap| is_protected(map)).await;
    namespace.delete::<ConfigMap>("held").await?;
    namespace.until("held", "is held", |held: &ConfigMap| !held.annotations().is_empty()).await;
    Ok(())
}

async fn uninstall(cluster: &Cluster, namespace: &Namespace, order: Order) -> Result<()> {
    for controller in order {
        let pace = Pace::start(namespace).await?;
        Release::try_uninstall(cluster, controller).await?;
        // One of the protected kinds is not served, and waiting for its list must not keep the process from ending.
        let took = pace.elapsed();
        ensure!(took < AT_ONCE, "{} was uninstalled after {took:?} at the cluster's pace", controller.name());
    }
    eventually("nothing of the charts is left", WAIT_TIMEOUT, async || match of_releases().await {
        Ok(left) if left.is_empty() => Ok(()),
        other => Err(other),
    })
    .await;
    Ok(())
}

async fn goes_well(cluster: &Cluster, order: Order) -> Result<()> {
    let namespace = cluster.namespace("uninstall").await?;
    begin(&namespace).await?;
    namespace.until_no_pod_ends().await;
    let pods = namespace.pods().await?;

    uninstall(cluster, &namespace, order).await?;
    namespace.until_gone::<ConfigMap>("held").await;
    let web = namespace.api::<BasicDeployment>().get("web").await?;
    ensure!(!is_protected(&web), "nobody is there who could take the finalizer away");
    for command in ["done", "waiting", "queued"] {
        namespace.api::<BasicDeploymentRestart>().get(command).await?;
    }
    let still = namespace.pods().await?;
    ensure!(uids(&still) == uids(&pods) && still.iter().all(is_ready), "what runs goes on");

    // The garbage collector deletes their dependents, without any of the controllers.
    for name in ["web", "paused"] {
        namespace.delete::<BasicDeployment>(name).await?;
    }
    eventually("no pod is left", WAIT_TIMEOUT, async || match namespace.pods().await {
        Ok(pods) if pods.is_empty() => Ok(()),
        other => Err(other.map(|pods| names(&pods))),
    })
    .await;
    namespace.until_collected::<BasicDeploymentRestart>("done").await;
    kubectl(&["delete", "namespace", &namespace.name, "--timeout=60s"]).await?;
    eventually("nothing is stuck", WAIT_TIMEOUT, async || match terminating().await {
        Ok(stuck) if stuck.is_empty() => Ok(()),
        other => Err(other),
    })
    .await;
    Ok(())
}

mod alone {
    use super::{
        CONTROLLERS, Cluster, Context, Controller, Release, Result, WORST, by_chance, goes_well,
        try_join_all, until_all_are_ready, values,
    };

    mod long {
        use super::*;

        #[tokio::test]
        async fn uninstalling_leaves_users_objects_and_nothing_that_is_stuck() -> Result<()> {
            let cluster = Cluster::alone().await?;

            let install = async |controller| {
                anyhow::Ok((controller, Release::upgrade(&cluster, controller, &values(controller)?).await?))
            };
            let releases = try_join_all(CONTROLLERS.map(install)).await?;
            for (number, order) in WORST.into_iter().chain(by_chance()?).enumerate() {
                if number > 0 {
                    let again = releases
                        .iter()
                        .map(async |(controller, release)| release.change(&values(*controller)?).await);
                    try_join_all(again).await?;
                }
                until_all_are_ready(&cluster).await;
                let names = order.map(Controller::name).join(", ");
                goes_well(&cluster, order).await.with_context(|| format!("uninstalling {names}"))?;
            }
            try_join_all(releases.into_iter().map(|(_, release)| release.restore())).await?;
            until_all_are_ready(&cluster).await;
            Ok(())
        }
    }
}
