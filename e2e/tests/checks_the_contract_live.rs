//! kubectl catena tries the replica contract on real objects: kinds that honour it pass, and a child that cheats in one
//! way fails just there.

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context, Result, ensure};
use e2e::{
    Cheat, CheatingChild, Cluster, JobReplicas, REPLICA_SETS, Said, WAIT_TIMEOUT, catena, checkout, image,
};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Namespace as CoreNamespace;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

/// Number of cheats that are tried at the same time.
const MAX_CONCURRENT_CHECKS: usize = 6;

/// A file with an object, until this is dropped.
pub struct File(PathBuf);

impl File {
    pub fn with(name: &str, object: &Value) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("catena-live-{}-{name}.yaml", std::process::id()));
        std::fs::write(&path, object.to_string())?;
        Ok(Self(path))
    }

    fn path(&self) -> Result<&str> {
        self.0.to_str().context("the temporary directory is no text")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// A workload of apps/v1.
fn workload(kind: &str, name: &str, image: &str) -> Value {
    let labels = json!({"app": name});
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": image}], "terminationGracePeriodSeconds": 0},
            },
        },
    });
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = name.into();
        object["spec"]["podManagementPolicy"] = "Parallel".into();
    }
    object
}

/// The names of the requirements with a result.
pub fn with_result(report: &Value, level: &str, result: &str) -> Vec<String> {
    let lines = report["requirements"].as_array().into_iter().flatten();
    let found = lines.filter(|line| line["level"] == level && line["result"] == result);
    found.filter_map(|line| line["name"].as_str().map(str::to_owned)).collect()
}

/// Fails if a trial was left out, except those of these requirements.
fn tries_all_but(report: &Value, without: &[&str]) -> Result<()> {
    let left_out = ["MUST", "SHOULD"].map(|level| with_result(report, level, "notApplicable")).concat();
    ensure!(left_out == without, "{left_out:?} instead of {without:?}: {report:#}");
    Ok(())
}

pub async fn check(kind: &str, template: &File, more: &[&str]) -> Result<Said> {
    let arguments = ["contract", "check", kind, "--live", "--template", template.path()?, "-o", "json"];
    catena("default", &[&arguments[..], more].concat()).await
}

/// A kind of apps/v1 with the mapping of its example honours the contract, in each requirement that is not left out.
async fn honours(kind: &str, bad: Option<&File>, left_out: &[&str]) -> Result<()> {
    let lower = kind.to_lowercase();
    let template = File::with(&lower, &workload(kind, "web", &image()))?;
    let values = checkout().join(format!("examples/children/{lower}.yaml"));
    let mut more = vec!["--values", values.to_str().context("the checkout is no text")?];
    if let Some(bad) = bad {
        more.extend(["--bad-template", bad.path()?]);
    }
    let said = check(&format!("{lower}s.apps"), &template, &more).await?;
    ensure!(said.code == 0, "{kind}: {said:?}");
    tries_all_but(&said.json()?, left_out)
}

#[tokio::test]
async fn a_basic_replica_set_is_seen_to_honour_the_contract() -> Result<()> {
    let _cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let set = json!({
        "apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "metadata": {"name": "web"},
        "spec": {"parameters": {"image": image()}},
    });
    let template = File::with("basicreplicaset", &set)?;
    let said = check("basicreplicasets.catena.dev", &template, &[]).await?;
    ensure!(said.code == 0, "{said:?}");
    let report = said.json()?;
    for level in ["MUST", "SHOULD"] {
        let missing =
            ["failed", "notProven", "notApplicable"].map(|result| with_result(&report, level, result));
        ensure!(missing.concat().is_empty(), "{report:#}");
    }
    Ok(())
}

#[tokio::test]
async fn a_deployment_is_seen_to_honour_the_contract_by_its_mapping() -> Result<()> {
    let _cluster = Cluster::with(&[]).await?;
    honours("Deployment", None, &[]).await
}

#[tokio::test]
async fn a_mapping_that_breaks_before_the_first_status_fails_just_there() -> Result<()> {
    let _cluster = Cluster::with(&[]).await?;
    let template = File::with("unreported", &workload("Deployment", "web", &image()))?;
    let values = checkout().join("examples/children/deployment.yaml");
    let values = values.to_str().context("the checkout is no text")?;
    let observed = "observedGeneration=has(object.status.observedGeneration) ? object.status.observedGeneration : 'none'";
    let said = check("deployments.apps", &template, &["--values", values, "--cel", observed]).await?;
    let report = said.json()?;
    ensure!(said.code == 1 && with_result(&report, "MUST", "failed") == ["outputs"], "{report:#}");
    Ok(())
}

#[tokio::test]
#[ignore = "its replicas are replaced one after another"]
async fn a_stateful_set_is_seen_to_honour_the_contract_by_its_mapping() -> Result<()> {
    let _cluster = Cluster::with(&[]).await?;
    honours("StatefulSet", None, &[]).await
}

#[tokio::test]
#[ignore = "a Deployment takes the same way in the default suite"]
async fn a_replica_set_is_seen_to_honour_the_contract_with_another_one_for_each_template() -> Result<()> {
    let _cluster = Cluster::with(&[]).await?;
    let bad = File::with("bad-replicaset", &workload("ReplicaSet", "other", "registry.invalid/missing:1"))?;
    // It has no restart.
    honours("ReplicaSet", Some(&bad), &["restart", "updated"]).await
}

#[tokio::test]
async fn the_example_of_a_third_party_is_seen_to_honour_the_contract() -> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::with(&[]).await?;
    let controller = JobReplicas::start(&cluster).await?;
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "JobReplicas", "metadata": {"name": "web"},
        // The fake nodes would end it.
        "spec": {"replicas": 1, "image": image(), "podAnnotations": {"catena.dev/play": "run-on"}},
    });
    let template = File::with("jobreplicas", &object)?;
    let said = check("jobreplicas.example.com", &template, &[]).await?;
    ensure!(said.code == 0, "{said:?}\n{}", controller.log());
    tries_all_but(&said.json()?, &[])
}

mod long {
    use super::*;

    #[tokio::test]
    async fn a_child_that_cheats_in_one_way_fails_just_there() -> Result<()> {
        let cluster = Cluster::with(&[]).await?;
        let namespace = cluster.namespace("cheats").await?;
        let child = CheatingChild::start(cluster.client.clone(), &namespace).await?;
        let failures = async |cheat: Cheat, breaks: Option<&str>| -> Result<Value> {
            let object = json!({
                "apiVersion": child.api_version, "kind": "Cheat", "metadata": {"name": "web"},
                "spec": {"image": image(), "cheat": cheat.name()},
            });
            let template = File::with(&cheat.name(), &object)?;
            // Only what a cheat never does is awaited in vain.
            let seconds = |breaks: &str| if breaks == "deletion" { 45 } else { 20 };
            let limit = breaks.map(|breaks| format!("{breaks}={}s", seconds(breaks)));
            // On a busy machine, what shows itself only in a later status may be late by seconds.
            let is_late = matches!(breaks, Some("steadyState" | "active"));
            let mut more = vec!["--window", if is_late { "10s" } else { "3s" }];
            more.extend(limit.iter().flat_map(|limit| ["--timeout", limit]));
            let said = check(&child.resource, &template, &more).await?;
            said.json().with_context(|| format!("{cheat:?}"))
        };
        let honest = failures(Cheat::None, None).await?;
        ensure!(honest["honours"] == true, "{honest:#}");
        let tried = stream::iter(Cheat::ALL).map(async |(cheat, breaks)| {
            let report = failures(cheat, Some(breaks)).await?;
            let failed = with_result(&report, "MUST", "failed");
            ensure!(
                failed == [breaks] && report["honours"] == false,
                "{cheat:?} is to break {breaks}: {report:#}"
            );
            Ok(())
        });
        tried.buffer_unordered(MAX_CONCURRENT_CHECKS).try_collect().await
    }
}

#[tokio::test]
async fn an_interrupted_check_removes_its_namespace() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let template = File::with("interrupted", &workload("Deployment", "web", &image()))?;
    let values = checkout().join("examples/children/deployment.yaml");
    let mut process = Command::new(std::env::var("CATENA_PLUGIN")?)
        .args(["contract", "check", "deployments.apps", "--live", "--template", template.path()?, "--values"])
        .arg(values)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(process.stderr.take().context("stderr")?).lines();
    let line = lines.next_line().await?.context("it says nothing")?;
    let name = line.split_whitespace().nth(2).context("it names no namespace")?.to_owned();
    let namespaces = cluster.all::<CoreNamespace>();
    namespaces.get(&name).await.with_context(|| line)?;
    let pid = process.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.context("it has ended")?, rustix::process::Signal::INT)?;
    let ended = tokio::time::timeout(2 * WAIT_TIMEOUT, process.wait()).await??;
    ensure!(ended.code() == Some(1), "{ended}");
    cluster.until_namespace_gone(&name).await;
    Ok(())
}
