//! The fields and conditions that all commands share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Condition of a command: whether its target owns it. Written by command-binder alone.
pub const BOUND: &str = "Bound";
/// Condition of a command: whether the controller of its target accepts it.
pub const ACCEPTED: &str = "Accepted";
/// Condition of a command: `Unknown` until the command has finished, and final from then on.
pub const SUCCEEDED: &str = "Succeeded";

/// A reference to the target of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// Name of the target.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the target. It defaults to the namespace of the command, and any other namespace is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// The state of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandStatus {
    /// Generation of the spec that this status refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Time at which the command started to take effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Time at which the command finished, successfully or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Replicas that are done out of those desired, for example `2/5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Conditions. `Bound`: the target owns the command. `Accepted`: the controller of the target accepts the
    /// command. `Succeeded`: the outcome, which is Unknown until the command has finished and final from then on.
    /// `Reconciling` is true until then and false afterwards, and `Stalled` is present only after a failure: kstatus
    /// computes `InProgress`, `Failed` or `Current` from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
