//! From each chart's earlier version to this one and back: workloads are not affected, and their definitions stay.

use std::{
    collections::BTreeSet,
    io::{Write, stderr},
    path::PathBuf,
    process::Command,
};

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicReplicaSet, keys::GROUP};
use e2e::{
    AuditLog, BACKUPS, BINDER, CONTROLLERS, Cluster, Controller, DEPLOYMENTS, Namespace, REAPER,
    REPLICA_SETS, Release, RequestUnderWay, Tally,
    commands::{condition_of, restart},
    deployment, helm, replica_set, shipped_template, uids, until_all_are_ready,
};
use futures::future::try_join_all;
use k8s_openapi::{
    api::core::v1::Pod, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{Resource, ResourceExt, api::ListParams};
use serde_json::{Value, json};

/// The output of git in the checkout.
fn git(arguments: &[&str]) -> Result<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let output = Command::new("git").args(["-C", root]).args(arguments).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git says {}", error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The charts before their last change, as archives.
struct Earlier {
    directory: PathBuf,
    charts: Vec<(Controller, PathBuf)>,
}

impl Earlier {
    fn take() -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("catena-charts-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let mut earlier = Self { directory, charts: Vec::new() };
        for controller in CONTROLLERS {
            match earlier.archive(controller) {
                Ok(archive) => earlier.charts.push((controller, archive)),
                // A checkout without its history, or a new chart.
                // Not captured, so that it is visible although the test passes.
                Err(error) => writeln!(stderr(), "left out: the earlier {}: {error:#}", controller.name())?,
            }
        }
        Ok(earlier)
    }

    fn archive(&self, controller: Controller) -> Result<PathBuf> {
        let name = controller.name();
        let chart = format!("charts/{name}");
        // Without the parts that are not rendered.
        let paths = ["templates", "files", "values.yaml"].map(|path| format!("{chart}/{path}"));
        let [templates, files, values] = &paths;
        let changed = git(&["rev-list", "--max-count=1", "HEAD", "--", templates, files, values])?;
        let archive = self.directory.join(format!("{name}.tgz"));
        let (prefix, output) = (format!("--prefix={name}/"), format!("--output={}", archive.display()));
        git(&["archive", &prefix, &output, &format!("{changed}~:{chart}")])?;
        println!("{name}: from the chart before {changed}");
        Ok(archive)
    }
}

impl Drop for Earlier {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).ok();
    }
}

/// The templates are the platform team's: they stay unchanged, whatever a chart ships.
fn values(controller: Controller) -> Result<Value> {
    Ok(if [DEPLOYMENTS, REPLICA_SETS].contains(&controller) {
        json!({"templates": {"default": shipped_template(controller)?}})
    } else {
        json!({})
    })
}

/// Our definitions; those of tests that have ended may still be going.
async fn definitions(cluster: &Cluster) -> Result<BTreeSet<(String, Option<String>)>> {
    let all = cluster.all::<CustomResourceDefinition>().list_metadata(&ListParams::default()).await?;
    let ours = |name: &str| name.split_once('.').is_some_and(|(_, group)| group == GROUP);
    let all = all.iter().map(|definition| (definition.name_any(), definition.uid()));
    Ok(all.filter(|(name, _)| ours(name)).collect())
}

/// This number of replicas appears, and none of the first ones is gone.
async fn grows_to(namespace: &Namespace, replicas: usize, first: &BTreeSet<String>) -> Result<()> {
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"replicas": replicas}})).await?;
    let pods = namespace.until_ready_pods(replicas).await;
    ensure!(uids(&pods).is_superset(first), "pods were replaced");
    Ok(())
}

/// A copy of the chart of basic-replicaset-controller whose definition lacks a field.
struct Older {
    directory: PathBuf,
}

impl Older {
    /// Without a field of `spec` or `status`.
    fn without(part: &str, field: &str) -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("catena-without-{field}-{}", std::process::id()));
        let older = Self { directory };
        let copied =
            Command::new("cp").arg("-R").arg(REPLICA_SETS.chart()?).arg(&older.directory).status()?;
        ensure!(copied.success(), "cp: {copied}");
        let file = older.directory.join("files/crd.yaml");
        let mut definition: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file)?)?;
        let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let fields = schema["properties"][part]["properties"].as_object_mut().context("the schema")?;
        fields.remove(field).with_context(|| format!("no field {field}"))?;
        std::fs::write(&file, definition.to_string())?;
        Ok(older)
    }
}

impl Drop for Older {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).ok();
    }
}

/// Whether the definition of `BasicReplicaSets` has a field of `spec` or `status`.
async fn has_field(cluster: &Cluster, part: &str, field: &str) -> Result<bool> {
    let definition = cluster.all::<CustomResourceDefinition>().get("basicreplicasets.catena.dev").await?;
    let definition = serde_json::to_value(definition)?;
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    Ok(schema["properties"][part]["properties"][field].is_object())
}

fn is_over(restart: &BasicDeploymentRestart) -> bool {
    condition_of(restart, "Succeeded").is_some_and(|told| told.status != "Unknown")
}

/// A second backup-controller would take the finalizers of the first one away.
#[tokio::test]
async fn a_second_release_of_a_chart_is_refused() -> Result<()> {
    let controllers = [BINDER, REAPER, BACKUPS];
    let _cluster = Cluster::with(&controllers).await?;
    for controller in controllers {
        let chart = controller.chart()?.display().to_string();
        let refused = helm(&["install", "second", &chart, "--dry-run=server"]).await.err();
        let said = refused.map(|error| format!("{error:#}")).unwrap_or_default();
        ensure!(said.contains("catena.dev:once-per-cluster:"), "{}: {said}", controller.name());
    }
    Ok(())
}

mod alone {
    use super::{
        AuditLog, BasicDeployment, BasicDeploymentRestart, BasicReplicaSet, Cluster, Condition, Context,
        Controller, DEPLOYMENTS, Earlier, Older, PathBuf, Pod, REPLICA_SETS, Release, RequestUnderWay,
        Resource, Result, Tally, condition_of, definitions, deployment, ensure, grows_to, has_field, is_over,
        json, replica_set, restart, try_join_all, uids, until_all_are_ready, values,
    };

    #[tokio::test]
    async fn an_upgrade_and_a_rollback_replace_no_pod_and_delete_no_definition() -> Result<()> {
        let cluster = Cluster::alone().await?;
        let earlier = Earlier::take()?;
        if earlier.charts.is_empty() {
            return Ok(());
        }
        let install = async |(controller, chart): &(Controller, PathBuf)| {
            let mut values = values(*controller)?;
            // The check of rights after the suite leaves out what has this label.
            values["commonLabels"] = json!({"e2e.catena.dev/earlier-chart": "true"});
            let release = Release::of_chart(&cluster, *controller, chart, &values).await;
            anyhow::Ok((*controller, release.with_context(|| format!("the earlier {}", controller.name()))?))
        };
        let releases = try_join_all(earlier.charts.iter().map(install)).await?;
        until_all_are_ready(&cluster).await;
        let namespace = cluster.namespace("upgrade").await?;
        namespace.create(&deployment("web", 2)).await?;
        // Not its status: the earlier definition may lack a field of it, and local processes are today's.
        let first = uids(&namespace.until_ready_pods(2).await);
        let before = definitions(&cluster).await?;

        let change =
            async |(controller, release): &(Controller, Release)| release.change(&values(*controller)?).await;
        try_join_all(releases.iter().map(change)).await?;
        until_all_are_ready(&cluster).await;
        grows_to(&namespace, 3, &first).await.context("after the upgrade")?;
        namespace.until_ready("web").await;
        let upgraded = definitions(&cluster).await?;
        ensure!(upgraded.is_superset(&before), "deleted by the upgrade: {:?}", before.difference(&upgraded));

        try_join_all(releases.iter().map(|(_, release)| release.rollback())).await?;
        until_all_are_ready(&cluster).await;
        grows_to(&namespace, 4, &first).await.context("after the rollback")?;
        let back = definitions(&cluster).await?;
        ensure!(back.is_superset(&upgraded), "deleted by the rollback: {:?}", upgraded.difference(&back));

        try_join_all(releases.into_iter().map(|(_, release)| release.restore())).await?;
        until_all_are_ready(&cluster).await;
        Ok(())
    }

    #[tokio::test]
    async fn a_controller_that_is_newer_than_its_definition_says_so_until_an_upgrade_brings_the_new_one()
    -> Result<()> {
        const FIELD: &str = "updated";
        let cluster = Cluster::alone().await?;
        let older = Older::without("status", FIELD)?;
        let same = values(REPLICA_SETS)?;
        let release = Release::of_chart(&cluster, REPLICA_SETS, &older.directory, &same).await?;
        until_all_are_ready(&cluster).await;
        ensure!(
            !has_field(&cluster, "status", FIELD).await?,
            "the older chart has not brought its definition"
        );
        let namespace = cluster.namespace("older").await?;
        let log = e2e::has(&[e2e::Need::AuditLog]).then(AuditLog::from_now).transpose()?;
        namespace.create(&replica_set("web", 1)).await?;
        let told = namespace.until_event("web", "StatusRefused").await;
        ensure!(
            told.contains(&format!("status.{FIELD}")) && told.contains("CustomResourceDefinition"),
            "{told}"
        );
        namespace.until_ready_pods(1).await;
        if let Some(log) = log {
            let requests = log.by(REPLICA_SETS, &namespace.name)?;
            let refused = requests
                .iter()
                .filter(|request| request.resource == "basicreplicasets" && request.code >= 400);
            ensure!(refused.count() <= 8, "it is hot: {:?}", Tally::of(&requests));
        }
        let set = namespace.api::<BasicReplicaSet>().get("web").await?;
        let is_pending = |condition: &Condition| condition.reason == "Pending";
        let conditions = set.status.map(|status| status.conditions).unwrap_or_default();
        ensure!(conditions.iter().all(is_pending), "a part of the status was written: {conditions:?}");

        release.change(&same).await?;
        ensure!(
            has_field(&cluster, "status", FIELD).await?,
            "the upgrade has not brought the new definition"
        );
        namespace.until_set_ready("web").await;
        release.rollback().await?;
        ensure!(!has_field(&cluster, "status", FIELD).await?, "the rollback has kept the new definition");
        release.restore().await?;
        until_all_are_ready(&cluster).await;
        Ok(())
    }

    #[tokio::test]
    async fn a_restart_waits_until_the_definition_of_the_child_has_the_field_for_it() -> Result<()> {
        const FIELD: &str = "restartedAt";
        let cluster = Cluster::alone().await?;
        let older = Older::without("spec", FIELD)?;
        let same = values(REPLICA_SETS)?;
        let release = Release::of_chart(&cluster, REPLICA_SETS, &older.directory, &same).await?;
        until_all_are_ready(&cluster).await;
        ensure!(!has_field(&cluster, "spec", FIELD).await?, "the older chart has not brought its definition");
        let namespace = cluster.namespace("token").await?;
        namespace.create(&deployment("web", 1)).await?;
        let web = namespace.until_ready("web").await;
        let first = uids(&namespace.until_ready_pods(1).await);

        let log = e2e::has(&[e2e::Need::AuditLog]).then(AuditLog::from_now).transpose()?;
        namespace.create(&restart(&web, "again")).await?;
        let told = |again: &BasicDeploymentRestart| {
            let told = condition_of(again, "Succeeded")?;
            told.message.contains("spec.restartedAt").then(|| told.message.clone())
        };
        let again = namespace.until("again", "tells the field", |again| told(again).is_some()).await;
        let message = told(&again).unwrap_or_default();
        ensure!(
            message.contains("upgrade the definition") && !message.contains("the template \""),
            "{message}"
        );
        ensure!(!is_over(&again), "it is told to be over: {:?}", again.status);
        let web = namespace.api::<BasicDeployment>().get("web").await?;
        let status = web.status.as_ref();
        ensure!(
            status.is_some_and(|status| e2e::is_true(&status.conditions, "RestartBlocked")),
            "no restart is told to be missing: {:?}",
            web.status
        );
        if let Some(log) = log {
            let requests = log.by(DEPLOYMENTS, &namespace.name)?;
            let refused = requests.iter().filter(|request| request.is("patch", "basicreplicasets"));
            ensure!(refused.count() <= 8, "it is hot: {:?}", Tally::of(&requests));
        }

        let request = RequestUnderWay::of(&BasicReplicaSet::url_path(&(), Some(&namespace.name))).await?;
        release.change(&same).await?;
        let has_token = |set: &BasicReplicaSet| set.spec.restarted_at.is_some();
        namespace.until("web", "has the token", has_token).await;
        request.end().await?;
        namespace.until("again", "is over", is_over).await;
        // The child's controller may have reported this generation before it could see the field.
        let is_replaced = |pods: &[Pod]| pods.len() == 1 && uids(pods).is_disjoint(&first);
        namespace.until_pods("the pod is replaced", is_replaced).await;
        release.restore().await?;
        until_all_are_ready(&cluster).await;
        Ok(())
    }
}
