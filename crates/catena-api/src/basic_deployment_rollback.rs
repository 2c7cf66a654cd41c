use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{CommandStatus, TargetRef};

/// A request to return a `BasicDeployment` to an earlier revision once.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "catena.dev",
    version = "v1alpha1",
    kind = "BasicDeploymentRollback",
    namespaced,
    doc = "BasicDeploymentRollback is a command that returns a BasicDeployment to an earlier revision once. The BasicDeployment stays on it until its spec and template render to something other than the rejected revision. The commands of a BasicDeployment run one at a time, oldest first, but a rollback goes first, and ends all older ones once it has run. Deleting a waiting command cancels it.",
    status = "CommandStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "bdrollback",
    category = "catena",
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetRef.name", description = "Name of the target, a BasicDeployment"),
    printcolumn(name = "To", type_ = "integer", json_path = ".spec.toRevision", description = "Number of the requested revision; 0 is the previous one"),
    printcolumn(name = "Succeeded", type_ = "string", json_path = ".status.conditions[?(@.type=='Succeeded')].status", description = "Outcome; Unknown until the command has finished"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type=='Succeeded')].reason", description = "Reason of the condition Succeeded"),
    printcolumn(name = "Progress", type_ = "string", json_path = ".status.progress", description = "Replicas that are done out of those desired"),
    printcolumn(name = "Bound", type_ = "string", json_path = ".status.conditions[?(@.type=='Bound')].status", description = "Whether the target owns the command", priority = "1"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type=='Succeeded')].message", description = "Message of the condition Succeeded", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.spec == oldSelf.spec").message("spec cannot be changed: delete this command, which cancels it if it has not begun, and create another one")
)]
#[serde(rename_all = "camelCase")]
pub struct BasicDeploymentRollbackSpec {
    /// The target: a `BasicDeployment` in the same namespace.
    pub target_ref: TargetRef,
    /// Number of the revision to return to, as listed by `kubectl get controllerrevisions`; 0 is the previous one.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub to_revision: i64,
    /// Seconds after which command-reaper deletes the finished command: 0 deletes it immediately, and an unset field
    /// keeps it. A command that Argo CD, Flux, Helm or the like would create again is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// Seconds after its creation at which an unfinished command fails, even if it is still waiting or not bound.
    /// Defaults to one day, so that a forgotten command does not run unexpectedly later. Changes that it has already
    /// made are not undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647), extend("default" = 86_400))]
    pub active_deadline_seconds: Option<i32>,
}
