//! The charts' own check before an upgrade: nothing is upgraded if a live object would be cut.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use catena_api::BasicReplicaSet;
use e2e::{Cluster, Controller, REPLICA_SETS, Release, replica_set};
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{ConfigMap, Pod},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

const SYSTEM: &str = "catena-system";
const DEFINITION: &str = "basicreplicasets.catena.dev";
const CHECK: &str = "basic-replicaset-controller-upgrade-check";

/// A copy of a chart whose definition lacks `spec.parameters`.
fn cut(controller: Controller, directory: &Path) -> Result<()> {
    let copied = Command::new("cp").arg("-R").arg(controller.chart()?).arg(directory).status()?;
    ensure!(copied.success(), "the chart could not be copied");
    let path = directory.join("files/crd.yaml");
    let mut definition: Value = serde_saphyr::from_str(&fs::read_to_string(&path)?)?;
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let fields = definition.pointer_mut(spec).and_then(Value::as_object_mut).context("no fields")?;
    fields.remove("parameters").context("no parameters")?;
    Ok(fs::write(path, definition.to_string())?)
}

/// The last words of the check's pod.
async fn last_words(cluster: &Cluster) -> Result<String> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let of_check = ListParams::default().labels("app.kubernetes.io/component=upgrade-check");
    // The garbage collector may not have deleted that of an earlier check yet.
    let newest = pods.list(&of_check).await?.items.into_iter().max_by_key(ResourceExt::creation_timestamp);
    let pod = newest.context("the check has left no pod")?;
    let containers = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
    let ended = containers.into_iter().find_map(|container| container.state?.terminated);
    ended.and_then(|ended| ended.message).context("the check has said nothing")
}

#[tokio::test]
async fn an_upgrade_that_would_cut_an_object_is_refused_and_changes_nothing() -> Result<()> {
    e2e::needs!(PluginImage);
    let cluster = Cluster::changing_one_of(&[REPLICA_SETS], REPLICA_SETS).await?;
    let namespace = cluster.namespace("cut").await?;
    namespace.create(&replica_set("web", 1)).await?;
    namespace.until_ready_pods(1).await;
    let definitions = cluster.all::<CustomResourceDefinition>();
    let before = definitions.get(DEFINITION).await?;

    let checked = json!({"crds": {"upgradeCheck": {"enabled": true}}});
    let release = Release::upgrade(&cluster, REPLICA_SETS, &checked).await?;
    let settings: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), SYSTEM);
    ensure!(settings.get_opt(CHECK).await?.is_none(), "the check that has passed leaves nothing");
    let directory = std::env::temp_dir().join(format!("catena-cut-{}", std::process::id()));
    cut(REPLICA_SETS, &directory)?;
    let refused = release.replace_chart(&directory, &checked).await;
    fs::remove_dir_all(&directory)?;
    let error = format!("{:#}", refused.expect_err("the upgrade is refused"));
    ensure!(error.contains("pre-upgrade"), "{error}");
    let said = last_words(&cluster).await?;
    ensure!(said.contains(&format!("{}/web", namespace.name)) && said.contains("spec.parameters"), "{said}");
    let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), SYSTEM);
    jobs.delete(CHECK, &DeleteParams::background()).await?;

    let after = definitions.get(DEFINITION).await?;
    assert_eq!(after.spec, before.spec);
    let set = namespace.api::<BasicReplicaSet>().get("web").await?;
    assert_eq!(set.spec.parameters, replica_set("web", 1).spec.parameters);
    let scratch =
        definitions.list_metadata(&ListParams::default().labels("catena.dev/upgrade-check")).await?;
    let left: Vec<_> = scratch.items.iter().filter_map(|left| left.metadata.name.as_deref()).collect();
    ensure!(!left.iter().any(|name| name.starts_with("basicreplicasets.")), "{left:?}");
    release.restore().await
}
