use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{BlockedBy, schema};

/// What a team wants to run: a number of replicas of a template that the platform team keeps.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "catena.dev",
    version = "v1alpha1",
    kind = "BasicDeployment",
    namespaced,
    doc = "BasicDeployment keeps one child in line with it: the child (by default a BasicReplicaSet) is rendered from a configured template and runs the replicas.",
    status = "BasicDeploymentStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "bdep",
    category = "catena",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready", description = "Whether all replicas serve the wanted revision"),
    printcolumn(name = "Serving", type_ = "string", json_path = ".status.progress", description = "Replicas that serve, of those wanted"),
    printcolumn(name = "Blocked-By", type_ = "string", json_path = ".status.blockedBy.name", description = "The first object that is not ready"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.blockedBy.reason", description = "Why it is not ready"),
    printcolumn(name = "Template", type_ = "string", json_path = ".spec.template", description = "The configured template", priority = "1"),
    printcolumn(name = "Revision", type_ = "integer", json_path = ".status.revision", description = "The revision that the child is on", priority = "1"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].message", description = "What the Ready condition says", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) <= 52").message("metadata.name must have at most 52 characters, because names of the child and of pods are made from it: choose a shorter name")
)]
#[serde(rename_all = "camelCase")]
pub struct BasicDeploymentSpec {
    /// How many replicas are wanted.
    #[serde(default = "schema::one_replica")]
    #[schemars(range(min = 0, max = 10_000))]
    pub replicas: i32,
    /// Name of the template, as configured in the controller, that the child is rendered from.
    #[serde(default = "schema::default_template")]
    #[schemars(length(min = 1, max = 63))]
    pub template: String,
    /// Values that the template may use. They cannot change the structure of what is rendered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub parameters: BTreeMap<String, String>,
    /// While true, the child is left as it is; replicas are still scaled.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub paused: bool,
    /// Seconds without progress after which the rollout is reported as failed. It is not stopped by that.
    #[serde(default = "schema::progress_deadline")]
    #[schemars(range(min = 1, max = 86_400))]
    pub progress_deadline_seconds: i32,
    /// How many old revisions are kept to roll back to.
    #[serde(default = "schema::revision_history_limit")]
    #[schemars(range(min = 0, max = 1_000))]
    pub revision_history_limit: i32,
}

impl Default for BasicDeploymentSpec {
    fn default() -> Self {
        Self {
            replicas: schema::one_replica(),
            template: schema::default_template(),
            parameters: BTreeMap::new(),
            paused: false,
            progress_deadline_seconds: schema::progress_deadline(),
            revision_history_limit: schema::revision_history_limit(),
        }
    }
}

/// What was last observed of a `BasicDeployment`. Rebuilt from observation; never read as an input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicDeploymentStatus {
    /// The generation of the spec that this status refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether all wanted replicas serve what the template renders to now.
    #[serde(default)]
    pub ready: bool,
    /// How many replicas serve now.
    #[serde(default)]
    pub active: i32,
    /// How many replicas are wanted of the child.
    #[serde(default)]
    pub replicas: i32,
    /// Replicas that serve, of those wanted, for example `3/3`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub progress: String,
    /// Number of the revision that the child is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Label selector of the pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The child that runs the replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildStatus>,
    /// The first object down the chain that is not ready, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
    /// Ready and Progressing always; Reconciling and Stalled (kstatus) and `RolledBack` only while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// The child of a `BasicDeployment`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildStatus {
    /// API version of the child.
    pub api_version: String,
    /// Kind of the child.
    pub kind: String,
    /// Name of the child, in the same namespace.
    pub name: String,
    /// Uid of the child.
    pub uid: String,
    /// sha256 of the text that the child's template rendered to.
    pub hash: String,
}
