//! The nodes that kwok simulates.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, api::PostParams};
use serde_json::json;

/// Creates the missing ones of the fake nodes `fake-1` to `fake-COUNT`, and returns their number.
pub async fn create(client: &Client, count: u32) -> Result<u32> {
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
