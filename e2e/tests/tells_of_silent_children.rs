//! A child whose controller does not run, or does not honour the replica contract, is told.

use std::slice;

use anyhow::Result;
use catena_api::BasicDeployment;
use e2e::{CHAIN, Cluster, DEPLOYMENTS, Release, deployment, open_kind};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use serde_json::json;

use crate::exchanges_children::values;

#[tokio::test]
async fn a_child_that_says_nothing_is_told() -> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("silent").await?;
    let definitions = cluster.all::<CustomResourceDefinition>();
    let group = format!("{}.example.com", namespace.name);
    let api_version = format!("{group}/v1");
    let mut definition = open_kind(&group, "Crowd", &["v1"]);
    definition["metadata"] = namespace.owns(&format!("crowds.{group}"));
    definitions.create(&PostParams::default(), &serde_json::from_value(definition)?).await?;
    let crowd = json!({"apiVersion": api_version, "kind": "Crowd", "resource": "crowds"});
    let mut values = values(&[], slice::from_ref(&crowd))?;
    values["templates"]["crowd"] =
        format!("{{apiVersion: {api_version}, kind: Crowd, metadata: {{name: {{{{ name }}}}}}}}").into();
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values).await?;

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
