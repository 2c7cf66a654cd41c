//! The nodes that kwok simulates.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
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

fn fake_node(name: &str) -> Result<Node> {
    // Room for benchmarks with 15,000 pods.
    let room = json!({ "cpu": "1000", "memory": "4Ti", "ephemeral-storage": "4Ti", "pods": "100000" });
    let mut node: Node = serde_json::from_value(json!({
        "metadata": {},
        "status": { "allocatable": room, "capacity": room },
    }))?;
    node.metadata = ObjectMeta {
        name: Some(name.to_owned()),
        annotations: Some([("kwok.x-k8s.io/node".to_owned(), "fake".to_owned())].into()),
        labels: Some(
            [
                ("kubernetes.io/hostname", name),
                ("kubernetes.io/os", "linux"),
                ("kubernetes.io/arch", "amd64"),
                ("kubernetes.io/role", "agent"),
                ("type", "kwok"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        ),
        ..ObjectMeta::default()
    };
    Ok(node)
}
