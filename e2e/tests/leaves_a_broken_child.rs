//! A child whose outputs cannot be read, or that cannot be restarted, is neither the end of its BasicDeployment nor of the others.

use anyhow::Result;
use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicDeploymentRollback, BasicReplicaSet};
use e2e::{CHAIN, COMMANDED, Cluster, DEPLOYMENTS, Release, alive, commands, deployment};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use crate::exchanges_children::{change, until_on, values, web};

/// Values in which the example of Deployments has these fields in its contract.
fn with_contract(fields: &[(&str, Value)]) -> Result<Value> {
    let mut values = values(&["deployment"], &[])?;
    for (field, value) in fields {
        values["children"][1]["contract"][field] = value.clone();
    }
    Ok(values)
}

fn says(web: &BasicDeployment, reason: &str) -> bool {
    let status = web.status.as_ref();
    status.and_then(|status| status.blocked_by.as_ref()).is_some_and(|blocker| blocker.reason == reason)
}

#[tokio::test]
async fn a_rollback_leads_away_from_a_child_that_breaks_the_contract_and_ends_the_restart() -> Result<()> {
    let cluster = Cluster::changing_one_of(&COMMANDED, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("broken").await?;
    // Its name is no number.
    let broken = with_contract(&[("active", "metadata.name".into()), ("ready", json!({"cel": "true"}))])?;
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &broken).await?;
    let web = namespace.create(&web()).await?;
    until_on::<BasicReplicaSet>(&namespace, &[]).await?;
    change(&namespace, json!({"template": "deployment"})).await?;
    namespace.until("web", "tells the breach", |web: &BasicDeployment| says(web, "ContractBroken")).await;
    let set = namespace.api::<BasicReplicaSet>().get("web").await?;
    assert!(set.spec.replicas >= 3, "the one that serves had to go: {}", set.spec.replicas);

    namespace.create(&commands::restart(&web, "again")).await?;
    commands::until_outcome::<BasicDeploymentRestart>(&namespace, "again", "Unknown", "Running").await;
    namespace.create(&commands::rollback(&web, "back", 0)).await?;
    commands::until_outcome::<BasicDeploymentRollback>(&namespace, "back", "True", "Complete").await;
    until_on::<BasicReplicaSet>(&namespace, &["Deployment"]).await?;
    commands::until_outcome::<BasicDeploymentRestart>(&namespace, "again", "False", "Superseded").await;
    release.restore().await
}

#[tokio::test]
async fn a_restart_that_the_server_refuses_holds_up_no_scaling() -> Result<()> {
    let cluster = Cluster::changing_one_of(&COMMANDED, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("refused").await?;
    let misspelt = with_contract(&[("restartedAt", "spec.restratedAt".into())])?;
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &misspelt).await?;
    let mut web = deployment("web", 1);
    web.spec.template = "deployment".into();
    let web = namespace.create(&web).await?;
    until_on::<Deployment>(&namespace, &[]).await?;
    namespace.create(&commands::restart(&web, "again")).await?;
    let told = namespace
        .until("again", "is refused", |again: &BasicDeploymentRestart| {
            commands::condition_of(again, "Succeeded")
                .is_some_and(|told| told.message.contains("spec.restratedAt"))
        })
        .await;
    assert!(commands::condition_of(&told, "Succeeded").is_some_and(|told| told.status == "Unknown"));
    change(&namespace, json!({"replicas": 2})).await?;
    // It does not claim that replicas of the wanted token serve.
    namespace
        .until("web", "follows", |web: &BasicDeployment| {
            let status = web.status.as_ref().filter(|status| !status.ready && status.active == 2);
            status.is_some_and(|status| e2e::is_true(&status.conditions, "RestartBlocked"))
        })
        .await;
    assert_eq!(alive(namespace.pods().await?).len(), 2);
    release.restore().await
}

#[tokio::test]
async fn a_rendering_that_the_server_refuses_holds_up_no_scaling() -> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("typo").await?;
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values(&["deployment"], &[])?).await?;
    let mut web = deployment("web", 2);
    web.spec.template = "deployment".into();
    namespace.create(&web).await?;
    until_on::<Deployment>(&namespace, &[]).await?;
    change(&namespace, json!({"parameters": {"image": ""}})).await?;
    namespace.until("web", "tells the refusal", |web: &BasicDeployment| says(web, "Invalid")).await;
    change(&namespace, json!({"replicas": 3})).await?;
    namespace.until_ready_pods(3).await;
    let undone = json!({"spec": {"replicas": 0}});
    namespace.merge::<Deployment>("web", undone).await?;
    namespace.until_ready_pods(3).await;
    release.restore().await
}
