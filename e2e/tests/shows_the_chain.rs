//! kubectl catena shows related objects: a chain, its revisions, the objects held for a backup, a kind's contract.

use anyhow::{Context, Result};
use catena_api::BasicDeployment;
use e2e::{
    BACKUP_BY, Cluster, WAIT_TIMEOUT, catena, deployment, eventually, protect, succeeds, texts,
    until_root_cause,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use serde_json::json;

#[tokio::test]
async fn a_tree_shows_the_whole_chain_from_any_of_its_objects() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("tree").await?;
    namespace.create(&deployment("web", 3)).await?;
    namespace.until_ready("web").await;
    let pods = namespace.until_ready_pods(3).await;

    let tree = succeeds(&namespace.name, &["tree", "web"]).await?.out;
    assert!(tree.contains("3 × Pod"), "{tree}");
    let asked = format!("pod/{}", pods[0].name_any());
    let from_below = succeeds(&namespace.name, &["tree", &asked]).await?.out;
    assert!(from_below.starts_with("OBJECT") && from_below.contains("BasicDeployment/web"), "{from_below}");
    assert!(
        from_below.contains(&format!("Pod/{} ◀", pods[0].name_any())) && from_below.contains("2 × Pod"),
        "{from_below}"
    );
    let alone = succeeds(&namespace.name, &["tree", &asked, "--below"]).await?.out;
    assert!(!alone.contains("BasicDeployment"), "{alone}");

    let json = succeeds(&namespace.name, &["tree", "web", "-o", "json"]).await?.json()?;
    let set = &json["tree"]["children"][0];
    assert_eq!(
        (&json["tree"]["state"], &set["kind"]),
        (&json!("Ready"), &json!("BasicReplicaSet")),
        "{json}"
    );
    assert_eq!(set["children"].as_array().map(Vec::len), Some(3), "{json}");
    Ok(())
}

#[tokio::test]
async fn the_history_shows_what_a_revision_changed() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("history").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"env.NEW": "1"}}})).await?;
    namespace
        .until("web", "is on revision 2", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| status.revision == Some(2) && status.ready)
        })
        .await;
    let table = succeeds(&namespace.name, &["history", "web"]).await?.out;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.lines().nth(2).is_some_and(|line| line.ends_with("current")), "{table}");
    assert!(table.lines().skip(1).all(|line| line.contains("BasicReplicaSet/web")), "{table}");
    let diff = succeeds(&namespace.name, &["history", "web", "--revision", "2"]).await?.out;
    assert!(diff.lines().any(|line| line.starts_with('+') && line.contains("env.NEW")), "{diff}");
    Ok(())
}

#[tokio::test]
async fn what_waits_for_its_backup_is_listed_and_let_go_with_a_reason() -> Result<()> {
    let cluster = Cluster::shared().await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("held").await?;
    let mut map = ConfigMap::default();
    map.metadata.name = Some("precious".into());
    map.metadata.labels = Some(texts! { BACKUP_BY => "fails" });
    namespace.create(&map).await?;
    namespace.until("precious", "is protected", |map: &ConfigMap| !map.finalizers().is_empty()).await;
    let early = catena(&namespace.name, &["release", "configmap/precious", "--reason", "none"]).await?;
    assert!(early.code == 1 && early.err.contains("delete it first"), "{early:?}");
    namespace.delete::<ConfigMap>("precious").await?;

    let held = eventually("the failed backup is listed", 2 * WAIT_TIMEOUT, async || {
        let said = catena(&namespace.name, &["held", "-o", "json"]).await.and_then(|said| said.json());
        let said = said.map_err(|error| json!(format!("{error:#}")))?;
        if said["items"][0]["reason"] == "BackupFailed" { Ok(said) } else { Err(said) }
    })
    .await;
    assert_eq!(held["items"][0]["name"], "precious", "{held}");
    let why = until_root_cause(&namespace.name, "configmap/precious", "PodFailed").await;
    assert!(why["remarks"].to_string().contains("release configmap/precious"), "{why}");
    succeeds(&namespace.name, &["release", "configmap/precious", "--reason", "a test"]).await?;
    namespace.until_gone::<ConfigMap>("precious").await;
    Ok(())
}

#[tokio::test]
async fn somebody_else_sees_only_what_they_may() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("as").await?;
    namespace.create(&deployment("web", 1)).await?;
    succeeds(&namespace.name, &["tree", "web"]).await?;
    let nobody = ["tree", "web", "--as", "nobody", "--request-timeout", "30s"];
    let refused = catena(&namespace.name, &nobody).await?;
    assert!(refused.code == 1 && refused.err.contains("nobody"), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn a_kind_is_checked_against_the_replica_contract() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("contract").await?;
    for kind in ["basicreplicasets.catena.dev", "basicdeployments.catena.dev"] {
        succeeds(&namespace.name, &["contract", "check", kind]).await?;
    }
    let other = catena(&namespace.name, &["contract", "check", "deployments.apps", "-o", "json"]).await?;
    assert_eq!(other.code, 1, "{other:?}");
    let fields = other.json()?;
    let active =
        fields["fields"].as_array().context("fields")?.iter().find(|field| field["name"] == "active");
    assert!(active.context("active")?["note"].to_string().contains("status.readyReplicas"), "{fields}");
    let numbers = ["contract", "check", "deployments.apps", "--path", "active=status.readyReplicas"];
    let unsound = catena(&namespace.name, &numbers).await?;
    assert!(unsound.code == 1 && unsound.out.contains("whether an old replica is counted"), "{unsound:?}");
    let ready = "ready=object.status.updatedReplicas == object.spec.replicas";
    succeeds(&namespace.name, &[&numbers[..], &["--cel", ready]].concat()).await?;
    Ok(())
}
