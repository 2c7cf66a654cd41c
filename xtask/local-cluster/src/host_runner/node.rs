//! The node that represents this machine.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Node};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::NODE_NAME;
use crate::{
    control_plane::readiness::says_ready,
    explain::{explain, note},
};

const LEASE_SECONDS: u64 = 40;
const RENEW_EVERY: Duration = Duration::from_secs(10);
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Registers the node, renews its lease and sets its status, forever.
pub async fn keep_ready(client: &Client) {
    loop {
        let pause = match renew(client).await {
            Ok(()) => RENEW_EVERY,
            Err(error) => {
                note(&format!("{NODE_NAME} was not kept ready: {}", explain(&error)));
                RETRY_AFTER
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn renew(client: &Client) -> Result<()> {
    // First, because without it pods are evicted; the node can wait.
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": NODE_NAME },
        "spec": {
            "holderIdentity": NODE_NAME,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format!("{:.6}", Timestamp::now()),
        },
    });
    Api::<Lease>::namespaced(client.clone(), "kube-node-lease")
        .patch(NODE_NAME, &PatchParams::apply("host-runner").force(), &Patch::Apply(lease))
        .await
        .context("could not renew the node's lease")?;
    let nodes = Api::<Node>::all(client.clone());
    let node = match nodes.get_opt(NODE_NAME).await.context("could not read the node")? {
        Some(node) => node,
        None => create(&nodes).await.context("could not create the node")?,
    };
    // At the start, and after this machine slept.
    if !says_ready(&node) {
        nodes
            .patch_status(NODE_NAME, &PatchParams::default(), &Patch::Strategic(status()))
            .await
            .context("could not set the node's status")?;
    }
    Ok(())
}

async fn create(nodes: &Api<Node>) -> Result<Node> {
    let node = serde_json::from_value(json!({
        "metadata": {
            "name": NODE_NAME,
            "labels": {
                "catena.dev/host-runner": "true",
                "kubernetes.io/hostname": NODE_NAME,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {
            "taints": [{ "key": "catena.dev/host-runner", "value": "true", "effect": "NoSchedule" }],
        },
    }))?;
    Ok(nodes.create(&PostParams::default(), &node).await?)
}

fn status() -> serde_json::Value {
    let now = Timestamp::now();
    // This machine's own limits bound the processes, not the scheduler.
    let room = json!({ "cpu": "1000", "memory": "4Ti", "ephemeral-storage": "4Ti", "pods": "10000" });
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "kept by the host runner",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    json!({
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [
                { "type": "InternalIP", "address": "127.0.0.1" },
                { "type": "Hostname", "address": NODE_NAME },
            ],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "osImage": "this machine",
                "containerRuntimeVersion": "process://1", "kubeletVersion": "host-runner",
                "kubeProxyVersion": "", "kernelVersion": "", "bootID": "", "machineID": "", "systemUUID": "",
            },
            "conditions": [
                condition("Ready", "True", "KubeletReady"),
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            ],
        },
    })
}
