//! A kind that is listed and does not declare that it honours the replica contract is doubted by an Event about the settings, and a
//! child that says nothing is told.

use std::slice;

use anyhow::{Error, Result};
use catena_api::{
    BasicDeployment,
    contract::{REPLICAS_LABEL, REPLICAS_VERSION},
};
use e2e::{CHAIN, Cluster, DEPLOYMENTS, Release, WAIT_TIMEOUT, deployment, eventually, open_kind};
use k8s_openapi::{
    api::events::v1::Event, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::exchanges_children::values;

/// The number of times that an Event about the settings doubted that a kind honours the contract.
async fn doubts(cluster: &Cluster, kind: &str) -> Result<i32, String> {
    let events = Api::<Event>::namespaced(cluster.client.clone(), "catena-system");
    let events = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let about = events.iter().filter(|event| {
        let regarding = event.regarding.as_ref().and_then(|about| about.name.as_deref());
        (regarding, event.reason.as_deref()) == (Some(DEPLOYMENTS.name()), Some("ContractNotDeclared"))
            && event.note.as_ref().is_some_and(|note| note.contains(kind))
    });
    Ok(about.map(|event| event.series.as_ref().map_or(1, |series| series.count)).sum())
}

/// Waits until a kind is doubted more often than that.
async fn until_doubted(cluster: &Cluster, kind: &str, before: i32) {
    let is_doubted = async || {
        doubts(cluster, kind)
            .await
            .and_then(|now| (now > before).then_some(()).ok_or_else(|| format!("{now}, as before")))
    };
    eventually(&format!("{kind} is doubted"), WAIT_TIMEOUT, is_doubted).await;
}

#[tokio::test]
async fn a_kind_that_does_not_say_that_it_honours_the_contract_and_a_child_that_says_nothing_are_told()
-> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("undeclared").await?;
    let definitions = cluster.all::<CustomResourceDefinition>();
    let group = format!("{}.example.com", namespace.name);
    let (name, api_version) = (format!("crowds.{group}"), format!("{group}/v1"));
    let mut definition = open_kind(&group, "Crowd", &["v1"]);
    definition["metadata"] = namespace.owns(&name);
    definitions.create(&PostParams::default(), &serde_json::from_value(definition)?).await?;
    let crowd = json!({"apiVersion": api_version, "kind": "Crowd", "resource": "crowds"});
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values(&[], slice::from_ref(&crowd))?).await?;
    until_doubted(&cluster, &api_version, 0).await;
    assert_eq!(doubts(&cluster, "BasicReplicaSet").await, Ok(0), "its CRD has the label");

    let label = json!({"metadata": {"labels": {REPLICAS_LABEL: REPLICAS_VERSION}}});
    definitions.patch(&name, &PatchParams::default(), &Patch::Merge(label)).await?;
    let before = async |kind| doubts(&cluster, kind).await.map_err(Error::msg);
    let (of_crowd, of_built_in) = (before(&api_version).await?, before("apps/v1 ReplicaSet").await?);
    // All kinds are looked at again, in their order.
    let built_in = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "resource": "replicasets"});
    let mut values = values(&[], &[crowd, built_in])?;
    values["templates"]["crowd"] =
        format!("{{apiVersion: {api_version}, kind: Crowd, metadata: {{name: {{{{ name }}}}}}}}").into();
    release.change(&values).await?;
    until_doubted(&cluster, "apps/v1 ReplicaSet", of_built_in).await;
    assert_eq!(doubts(&cluster, &api_version).await, Ok(of_crowd), "it has the label now");

    // Nobody runs it.
    let mut silent = deployment("web", 1);
    (silent.spec.template, silent.spec.progress_deadline_seconds) = ("crowd".into(), 2);
    namespace.create(&silent).await?;
    let note = namespace.until_event("web", "ContractBroken").await;
    assert!(note.contains("has never reported contract.observedGeneration"), "{note}");
    namespace.delete::<BasicDeployment>("web").await?;
    release.restore().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    Ok(())
}
