//! The smallest controller, with which docs/write-a-controller.md begins.

use std::time::Duration;

use anyhow::Result;
use e2e::{ChaosProxy, Cluster, OwnProcess, example_program};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use serde_json::json;
use tokio::time::sleep;

const CARD: &str = "card-of-web";

#[tokio::test]
async fn the_smallest_controller_keeps_a_card_beside_each_service_account() -> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("hello").await?;
    let proxy = ChaosProxy::start().await?;
    let _process = OwnProcess::start(example_program("hello-controller")?, &proxy, &json!({}))?;
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "web"}}))?;
    let uid = namespace.create(&account).await?.metadata.uid;
    let is_its = |card: &ConfigMap| {
        let mut owners = card.metadata.owner_references.iter().flatten();
        owners.any(|owner| owner.controller == Some(true) && Some(&owner.uid) == uid.as_ref())
    };
    let first = namespace.until(CARD, "belongs to its account", is_its).await;
    // After the passes that follow a write anyway.
    sleep(Duration::from_secs(3)).await;
    namespace.delete::<ConfigMap>(CARD).await?;
    let is_another = |card: &ConfigMap| card.metadata.uid != first.metadata.uid && is_its(card);
    namespace.until(CARD, "is created again", is_another).await;
    namespace.delete::<ServiceAccount>("web").await?;
    namespace.until_collected::<ConfigMap>(CARD).await;
    Ok(())
}
