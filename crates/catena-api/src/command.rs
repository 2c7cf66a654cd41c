//! What all commands have in common.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Condition of a command: whether it is owned by its target. Written by command-binder alone.
pub const BOUND: &str = "Bound";
/// Condition of a command: whether the target's controller takes it.
pub const ACCEPTED: &str = "Accepted";
/// Condition of a command: `Unknown` until it has ended; then it never changes any more.
pub const SUCCEEDED: &str = "Succeeded";

/// The object that a command is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// Name of the target.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the target: the command's own, which is also meant when this is left out. Another one is
    /// refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// How far a command is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandStatus {
    /// The generation of the spec that this status refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When it began to take effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended, well or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Replicas that it is done with, of all, for example `2/5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Bound (is it owned by its target?), Accepted (does the target's controller take it?) and Succeeded, which
    /// is Unknown until the command has ended and never changes after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
