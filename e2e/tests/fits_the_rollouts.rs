//! examples/children/rollout.yaml fits the definition of Argo Rollouts: its paths, the fields in its expressions, and the
//! fields of its template.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::{Cluster, ForeignKinds, WAIT_TIMEOUT, checkout, eventually, example, kubectl_with_input, succeeds};
use serde_json::Value;

/// The fields that the expressions of a contract read, as `status.phase`.
fn read_fields(contract: &Value) -> BTreeSet<String> {
    let outputs = contract.as_object().into_iter().flat_map(serde_json::Map::values);
    let outputs = outputs.chain([&contract["pods"]["selector"]]);
    let expressions = outputs.filter_map(|output| output["cel"].as_str());
    let of = |expression: &str| -> Vec<String> {
        let parts = expression.split("object.").skip(1);
        let path = |part: &str| {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '?');
            let names = part[..end.unwrap_or(part.len())].replace('?', "");
            names.split('.').take(2).collect::<Vec<_>>().join(".")
        };
        parts.map(path).collect()
    };
    expressions.flat_map(of).collect()
}

#[test]
fn the_mapping_of_rollouts_reads_only_fields_of_their_definition() -> Result<()> {
    let values: Value = serde_saphyr::from_str(&example("children/rollout.yaml")?)?;
    let text = std::fs::read_to_string(checkout().join("e2e/crds/argo-rollouts.yaml"))?;
    let definition: Value = serde_saphyr::from_str(&text)?;
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let read = read_fields(&values["children"][0]["contract"]);
    ensure!(read.contains("status.stableRS") && read.contains("spec.selector"), "{read:?}");
    let is_there = |path: &&String| {
        let (part, field) = path.split_once('.').unwrap_or_default();
        schema[part]["properties"][field].is_object()
    };
    let missing: Vec<&String> = read.iter().filter(|path| !is_there(path)).collect();
    ensure!(missing.is_empty(), "Rollouts have no {missing:?}");
    let observed = &schema["status"]["properties"]["observedGeneration"]["type"];
    ensure!(observed == "string", "the mapping converts a text, but it is a {observed}");
    Ok(())
}

#[tokio::test]
async fn the_mapping_and_the_template_of_rollouts_fit_their_definition() -> Result<()> {
    e2e::needs!(NoKindsOfOthers);
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("rollouts").await?;
    let kinds = ForeignKinds::install(&["argo-rollouts"]).await?;
    let file = checkout().join("examples/children/rollout.yaml");
    let file = file.to_str().context("the checkout is no text")?;
    let check = ["contract", "check", "rollouts.argoproj.io", "--values", file];
    eventually("the schema of Rollouts is published and fits", WAIT_TIMEOUT, async || {
        succeeds(&namespace.name, &check).await.map_err(|error| error.to_string())
    })
    .await;
    let values: Value = serde_saphyr::from_str(&example("children/rollout.yaml")?)?;
    let template = values["templates"]["default"].as_str().context("a template")?;
    let rendered = template.replace("{{ name }}", "web").replace("{{ parameters.image }}", "web:1");
    let create = [
        "create",
        "--validate=strict",
        "--dry-run=server",
        "--namespace",
        &namespace.name,
        "--filename",
        "-",
    ];
    let (taken, said) = kubectl_with_input(&create, &rendered).await?;
    ensure!(taken, "{said}");
    let (taken, said) = kubectl_with_input(&create, &rendered.replace("canary:", "canaries:")).await?;
    ensure!(!taken && said.contains("canaries"), "{said}");
    kinds.remove().await
}
