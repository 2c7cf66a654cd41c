use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::image;

/// The template of a pod that any namespace admits.
#[must_use]
pub fn pod_template(app: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "main", "image": image(),
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    })
}

/// Whether a pod is not terminating.
#[must_use]
pub fn is_alive(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}

/// The pods that are not terminating.
#[must_use]
pub fn alive(pods: Vec<Pod>) -> Vec<Pod> {
    pods.into_iter().filter(is_alive).collect()
}

/// Whether a pod has the condition Ready.
#[must_use]
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The number of restarts of a pod's containers.
#[must_use]
pub fn restarts(pod: &Pod) -> i32 {
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    containers.map(|container| container.restart_count).sum()
}

/// The uids of pods.
#[must_use]
pub fn uids(pods: &[Pod]) -> BTreeSet<String> {
    pods.iter().filter_map(ResourceExt::uid).collect()
}

/// The names of pods.
#[must_use]
pub fn names(pods: &[Pod]) -> BTreeSet<String> {
    pods.iter().map(ResourceExt::name_any).collect()
}

/// A pod in one line, for messages.
pub(crate) fn describe(pod: &Pod) -> String {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("no phase");
    let readiness = if is_ready(pod) { "ready" } else { "not ready" };
    format!("{} {} {phase}, {readiness}", pod.name_any(), pod.uid().unwrap_or_default())
}

/// The pods of an owner that are not terminating.
#[must_use]
pub fn pods_of(pods: Vec<Pod>, owner: &str) -> Vec<Pod> {
    let is_of = |pod: &Pod| pod.owner_references().iter().any(|reference| reference.uid == owner);
    alive(pods).into_iter().filter(is_of).collect()
}
