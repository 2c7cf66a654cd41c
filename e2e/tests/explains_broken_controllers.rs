//! Controllers of ours that are missing, hang, crash, or do not take their settings: kubectl catena why begins with them.

use std::time::Duration;

use anyhow::{Result, ensure};
use catena_api::{BasicDeploymentRestart, BasicReplicaSet};
use e2e::{
    BINDER, CHAIN, Cluster, DEPLOYMENTS, Paused, REPLICA_SETS, Release, WAIT_TIMEOUT, catena, deployment,
    eventually, helm, succeeds, until_says,
};
use serde_json::json;

/// Before this, basic-deployment-controller does not report that a child only takes its time.
const FIRST_REPORT: Duration = Duration::from_secs(18);

#[tokio::test]
async fn in_the_first_seconds_the_controller_of_the_child_is_blamed_if_it_does_not_run() -> Result<()> {
    e2e::needs!(Processes);
    let cluster = Cluster::changing_one_of(&CHAIN, REPLICA_SETS).await?;
    let namespace = cluster.namespace("why-first").await?;
    let paused = Paused::pause(&cluster, REPLICA_SETS).await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until("web", "is there", |_: &BasicReplicaSet| true).await;
    let says = "BasicDeployment/web is not ready: BasicReplicaSet/web is not reconciled, because no basic-replicaset-controller is running";
    until_says(FIRST_REPORT, &namespace.name, "web", says).await;
    drop(paused);
    namespace.until_ready("web").await;
    Ok(())
}

#[tokio::test]
#[ignore = "rare"]
async fn a_template_that_only_refused_settings_bring_leads_to_them() -> Result<()> {
    let cluster = Cluster::changing(&[DEPLOYMENTS]).await?;
    let namespace = cluster.namespace("why-settings").await?;
    let pattern = json!([{"name": "image", "pattern": "("}]);
    let values = json!({"templates": {"db": "kind: X"}, "parameters": {"default": pattern}});
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values).await?;
    let mut database = deployment("db", 1);
    database.spec.template = "db".into();
    namespace.create(&database).await?;
    let says = "BasicDeployment/db is not ready: ConfigMap/basic-deployment-controller in namespace catena-system brings its template \"db\", but basic-deployment-controller does not take its newer settings";
    until_says(2 * WAIT_TIMEOUT, &namespace.name, "db", says).await;
    namespace.create(&deployment("web", 0)).await?;
    let well = until_says(WAIT_TIMEOUT, &namespace.name, "web", "BasicDeployment/web is ready").await;
    ensure!(well["remarks"].to_string().contains("does not take its newer settings"), "{well}");
    release.restore().await?;
    Ok(())
}

#[tokio::test]
#[ignore = "rare"]
async fn a_controller_whose_new_pod_crashes_is_noted_with_its_last_words_while_the_old_one_serves()
-> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::changing_one_of(&CHAIN, REPLICA_SETS).await?;
    let namespace = cluster.namespace("why-crashes").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    let loud = json!({"log": {"level": "operator_kit=loud"}});
    let release = Release::upgrade(&cluster, REPLICA_SETS, &loud).await?;
    let words = "(CrashLoopBackOff), and says: ";
    eventually("a note tells of the update", 2 * WAIT_TIMEOUT, async || {
        let said = catena(&namespace.name, &["why", "web"]).await.map_err(|error| error.to_string())?.out;
        let is_told = said.starts_with("BasicDeployment/web is ready")
            && said.contains("the update of basic-replicaset-controller does not finish: its pod")
            && said.contains(words)
            && said.contains("operator_kit=loud");
        if is_told { Ok(()) } else { Err(said) }
    })
    .await;
    release.restore().await?;
    Ok(())
}

#[tokio::test]
#[ignore = "rare"]
async fn a_controller_that_hangs_is_told_from_one_that_is_missing() -> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::changing_one_of(&CHAIN, REPLICA_SETS).await?;
    let namespace = cluster.namespace("why-hangs").await?;
    let frozen = REPLICA_SETS.until_ready(&cluster).await.freeze()?;
    namespace.create(&deployment("web", 1)).await?;
    let says = "BasicDeployment/web is not ready: BasicReplicaSet/web is not reconciled, because basic-replicaset-controller is running, but does not work: its pod catena-system/";
    until_says(WAIT_TIMEOUT, &namespace.name, "web", says).await;
    drop(frozen);
    namespace.until_ready("web").await;
    Ok(())
}

#[tokio::test]
#[ignore = "rare"]
async fn a_command_whose_kind_is_not_in_the_values_of_the_binder_is_told_so() -> Result<()> {
    let cluster = Cluster::changing_one_of(&[DEPLOYMENTS, REPLICA_SETS, BINDER], BINDER).await?;
    let namespace = cluster.namespace("why-no-entry").await?;
    let release =
        Release::upgrade(&cluster, BINDER, &json!({"kinds": [], "discovery": {"enabled": false}})).await?;
    // With the former settings, it would tell that it has lost its right to bind the command.
    helm(&["test", BINDER.name(), "--timeout=180s"]).await?;
    namespace.create(&deployment("web", 1)).await?;
    eventually("the command is issued", WAIT_TIMEOUT, async || {
        // The policies of the binder may still be changing.
        succeeds(&namespace.name, &["restart", "web", "--name", "again"])
            .await
            .map_err(|error| error.to_string())
    })
    .await;
    let says = "BasicDeploymentRestart/again is not bound to its target, and command-binder is running but has not reported on it (BinderSilent";
    until_says(WAIT_TIMEOUT, &namespace.name, "basicdeploymentrestart/again", says).await;
    release.restore().await?;
    namespace
        .until("again", "has succeeded", |command: &BasicDeploymentRestart| {
            let status = command.status.as_ref();
            status.is_some_and(|status| e2e::is_true(&status.conditions, "Succeeded"))
        })
        .await;
    Ok(())
}
