//! The fake nodes, and checks by the API server whether the cluster is usable.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::json;

/// Time limit of a readiness request: a starting server may accept a connection without answering.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether `/readyz` answers ok.
pub async fn api_server_is_ready(client: &Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
    matches!(tokio::time::timeout(REQUEST_TIMEOUT, client.request_text(request)).await, Ok(Ok(_)))
}

/// The number of nodes that are ready for pods, and of all nodes.
pub async fn nodes_ready(client: &Client) -> Result<(usize, usize)> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    let ready = nodes.items.iter().filter(|node| is_ready(node)).count();
    Ok((ready, nodes.items.len()))
}

/// Whether the node's status says that it is ready.
pub fn says_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether the node is ready for pods.
fn is_ready(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    // The controller manager removes this taint a moment after the node says so.
    says_ready(node) && !taints.iter().any(|taint| taint.key == "node.kubernetes.io/not-ready")
}

/// Whether pods can be created in the namespace `default`.
pub async fn default_service_account_exists(client: &Client) -> bool {
    Api::<ServiceAccount>::default_namespaced(client.clone())
        .get_opt("default")
        .await
        .is_ok_and(|sa| sa.is_some())
}

/// Creates the missing ones of the fake nodes `fake-1` to `fake-COUNT`, and returns their number.
pub async fn create_fake_nodes(client: &Client, count: u32) -> Result<u32> {
    let nodes = Api::<Node>::all(client.clone());
    let mut created = 0;
    for number in 1..=count {
        let node = fake_node(&format!("fake-{number}"))?;
        match nodes.create(&PostParams::default(), &node).await {
            Ok(_) => created += 1,
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(error).context("could not create a fake node"),
        }
    }
    Ok(created)
}

fn fake_node(name: &str) -> serde_json::Result<Node> {
    // Room for benchmarks with 15,000 pods.
    let room = json!({ "cpu": "1000", "memory": "4Ti", "ephemeral-storage": "4Ti", "pods": "100000" });
    serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "annotations": { "kwok.x-k8s.io/node": "fake" },
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/role": "agent",
                "type": "kwok",
            },
        },
        "status": { "allocatable": room, "capacity": room },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_that_it_is_ready_before_its_taint_is_gone() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "host"},
            "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }))
        .unwrap();
        assert!(says_ready(&node) && !is_ready(&node));
    }
}
