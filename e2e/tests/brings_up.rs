//! From a few lines of YAML to serving pods.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeployment, BasicReplicaSet};
use e2e::{CHAIN, Cluster, condition, deployment, example, is_true, kubectl, kubectl_with_input};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt, api::ListParams};

/// The one owner of an object, which is its controller.
fn only_owner<K: Resource>(object: &K) -> &OwnerReference {
    let owners = object.owner_references();
    assert_eq!(owners.len(), 1, "{owners:?}");
    assert_eq!((owners[0].controller, owners[0].block_owner_deletion), (Some(true), Some(true)));
    &owners[0]
}

#[tokio::test]
async fn a_basic_deployment_becomes_ready_and_counts_its_replicas() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("ready").await?;
    namespace.create(&deployment("web", 3)).await?;

    let web = namespace.until_ready("web").await;
    let status = web.status.context("status")?;
    assert_eq!((status.active, status.replicas, status.progress.as_str()), (3, 3, "3/3"));
    assert_eq!(status.blocked_by, None);
    Ok(())
}

#[tokio::test]
async fn each_object_of_the_chain_is_owned_by_the_one_above() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("owners").await?;
    namespace.create(&deployment("web", 3)).await?;
    let web = namespace.until_ready("web").await;

    let children = namespace.api::<BasicReplicaSet>().list(&ListParams::default()).await?.items;
    assert_eq!(children.len(), 1);
    let (child, owner) = (&children[0], only_owner(&children[0]));
    assert_eq!((owner.kind.as_str(), Some(&owner.uid)), ("BasicDeployment", web.metadata.uid.as_ref()));
    assert_eq!(web.status.and_then(|status| status.child).map(|child| child.uid), child.uid());

    let pods = namespace.until_ready_pods(3).await;
    for pod in &pods {
        let owner = only_owner(pod);
        assert_eq!((owner.kind.as_str(), Some(&owner.uid)), ("BasicReplicaSet", child.metadata.uid.as_ref()));
    }
    Ok(())
}

#[tokio::test]
async fn its_conditions_are_what_kstatus_reads() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("kstatus").await?;
    namespace.create(&deployment("web", 2)).await?;

    let web = namespace.until_ready("web").await;
    let status = web.status.context("status")?;
    assert_eq!(status.observed_generation, web.metadata.generation);
    assert!(is_true(&status.conditions, "Ready") && is_true(&status.conditions, "Progressing"));
    assert_eq!(condition(&status.conditions, "Reconciling"), None, "kstatus takes it for in progress");
    assert_eq!(condition(&status.conditions, "Stalled"), None, "kstatus takes it for failed");
    for condition in &status.conditions {
        assert_eq!(condition.observed_generation, web.metadata.generation, "{condition:?}");
    }

    let set = namespace.until_set_ready("web").await;
    let conditions = set.status.context("status")?.conditions;
    assert_eq!(condition(&conditions, "Reconciling"), None);
    assert_eq!(condition(&conditions, "Stalled"), None);
    Ok(())
}

#[tokio::test]
async fn it_is_reconciling_and_not_ready_before_its_pods_are() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("reconciling").await?;
    let mut never_ready = deployment("web", 1);
    never_ready.spec.parameters.insert("image".into(), "registry.invalid/missing:1".into());
    namespace.create(&never_ready).await?;

    namespace
        .until("web", "is reconciling", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| {
                let conditions = &status.conditions;
                !status.ready && is_true(conditions, "Reconciling") && !is_true(conditions, "Ready")
            })
        })
        .await;
    Ok(())
}

#[tokio::test]
async fn kubectl_waits_for_it_and_shows_that_it_serves() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("kubectl").await?;
    namespace.create(&deployment("web", 3)).await?;

    let in_namespace = ["--namespace", &namespace.name];
    kubectl(&[&in_namespace[..], &["wait", "--for=condition=Ready", "--timeout=60s", "bdep/web"]].concat())
        .await?;
    let table = kubectl(&[&in_namespace[..], &["get", "basicdeployments"]].concat()).await?;
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let (header, row) = (lines.next().context(table.clone())?, lines.next().context(table.clone())?);
    assert_eq!(header[..3], ["NAME", "READY", "SERVING"], "{table}");
    assert_eq!(row[..3], ["web", "true", "3/3"], "{table}");

    // kubectl keeps what it discovered: without this, a category lacks the kinds that a test before had taken away.
    kubectl(&["api-resources", "--api-group=catena.dev"]).await?;
    let all = kubectl(&[&in_namespace[..], &["get", "catena"]].concat()).await?;
    assert!(all.contains("basicdeployment.catena.dev/web"), "the category shows every kind: {all}");
    assert!(all.contains("basicreplicaset.catena.dev/web"), "the category shows every kind: {all}");
    Ok(())
}

#[tokio::test]
async fn kubectl_explains_the_fields() -> Result<()> {
    let _cluster = Cluster::with(&CHAIN).await?;
    for (field, says) in [
        ("basicdeployment.spec.replicas", "Number of desired replicas"),
        ("basicdeployment.status.blockedBy.reason", "One-word reason why the object blocks"),
        ("basicreplicaset.spec.maxSurge", "Number of pods that may exist above"),
    ] {
        let text = kubectl(&["explain", field]).await?.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(says), "{field}: {text}");
    }
    Ok(())
}

#[tokio::test]
async fn the_examples_work_as_they_stand() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("examples").await?;
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut applied = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = example(&path.file_name().context("a file")?.to_string_lossy())?;
            // Each command is a separate object, so the server generates its name.
            let verb = if text.contains("generateName:") { "create" } else { "apply" };
            let arguments = ["--namespace", &namespace.name, verb, "--filename", "-"];
            let (succeeded, said) = kubectl_with_input(&arguments, &text).await?;
            ensure!(succeeded, "{}: {said}", path.display());
            applied += 1;
        }
    }
    assert!(applied > 0, "there is no example");
    for deployment in &namespace.api::<BasicDeployment>().list(&ListParams::default()).await? {
        namespace.until_ready(&deployment.name_any()).await;
    }
    for set in &namespace.api::<BasicReplicaSet>().list(&ListParams::default()).await? {
        namespace.until_set_ready(&set.name_any()).await;
    }
    Ok(())
}
