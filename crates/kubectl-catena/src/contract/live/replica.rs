//! A replica of a child, as its pod shows it. Pure.

use kube::{ResourceExt, core::DynamicObject};

use crate::object::{conditions, text};

/// A replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// The uid of its pod.
    pub uid: String,
    /// The name of its pod.
    pub name: String,
    /// The version of its pod.
    pub resource_version: String,
    /// The labels of its pod.
    pub labels: std::collections::BTreeMap<String, String>,
    /// Whether its pod neither is being deleted nor has ended.
    pub is_alive: bool,
    /// Whether it is alive, and its pod is ready.
    pub serves: bool,
}

impl Replica {
    /// The replica of a pod.
    pub fn of(pod: &DynamicObject) -> Self {
        let has_ended = matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed"));
        let is_alive = pod.metadata.deletion_timestamp.is_none() && !has_ended;
        let is_ready =
            conditions(pod).iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
        Self {
            uid: pod.uid().unwrap_or_default(),
            name: pod.name_any(),
            resource_version: pod.resource_version().unwrap_or_default(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            is_alive,
            serves: is_alive && is_ready,
        }
    }
}

/// The number of replicas that serve.
pub fn serving(replicas: &[Replica]) -> usize {
    replicas.iter().filter(|replica| replica.serves).count()
}

/// The number of replicas that are alive.
pub fn alive(replicas: &[Replica]) -> usize {
    replicas.iter().filter(|replica| replica.is_alive).count()
}
