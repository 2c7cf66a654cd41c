use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{CommandStatus, TargetRef};

/// Asks once for a `BasicDeployment` to be put on an earlier revision.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "catena.dev",
    version = "v1alpha1",
    kind = "BasicDeploymentRollback",
    namespaced,
    doc = "BasicDeploymentRollback puts a BasicDeployment on an earlier revision once. It stays there until its spec or its template give something else than what was rolled back. Commands of a BasicDeployment run one at a time, the oldest first; deleting one that waits cancels it.",
    status = "CommandStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "bdrollback",
    category = "catena",
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetRef.name", description = "The BasicDeployment that it is for"),
    printcolumn(name = "To", type_ = "integer", json_path = ".spec.toRevision", description = "The revision asked for; 0 is the previous one"),
    printcolumn(name = "Succeeded", type_ = "string", json_path = ".status.conditions[?(@.type=='Succeeded')].status", description = "Unknown until it has ended"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type=='Succeeded')].reason", description = "How far it is, or how it ended"),
    printcolumn(name = "Progress", type_ = "string", json_path = ".status.progress", description = "Replicas that it is done with, of all"),
    printcolumn(name = "Bound", type_ = "string", json_path = ".status.conditions[?(@.type=='Bound')].status", description = "Whether it is owned by its target", priority = "1"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type=='Succeeded')].message", description = "What the Succeeded condition says", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.spec == oldSelf.spec").message("spec cannot be changed: delete this command, which cancels it if it has not begun, and create another one")
)]
#[serde(rename_all = "camelCase")]
pub struct BasicDeploymentRollbackSpec {
    /// The `BasicDeployment` that it is for, in the same namespace.
    pub target_ref: TargetRef,
    /// The revision to go to, as `kubectl get controllerrevisions` lists them; 0 is the previous one.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub to_revision: i64,
    /// Seconds after its end when it is deleted: 0 is at once, and without a number it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// Seconds after its creation when it has failed unless it has succeeded, also while it still waits or is not
    /// bound; a day by default, so that nothing waits for ever and then comes as a surprise. What it has done by then
    /// stays done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647), extend("default" = 86_400))]
    pub active_deadline_seconds: Option<i32>,
}
