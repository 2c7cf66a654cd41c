use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{apis::meta::v1::Condition, util::intstr::IntOrString};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{BlockedBy, PodReplacementPolicy, schema};

/// The desired state: a number of replicas of a template that the platform team maintains.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "catena.dev",
    version = "v1alpha1",
    kind = "BasicDeployment",
    namespaced,
    doc = "BasicDeployment runs replicas through one child, by default a BasicReplicaSet. The child is rendered from a configured template and kept in line with the spec.",
    status = "BasicDeploymentStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "bdep",
    shortname = "bd",
    category = "catena",
    label("contract.catena.dev/replicas", "v1"),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready", description = "Whether all desired replicas serve the desired revision"),
    printcolumn(name = "Serving", type_ = "string", json_path = ".status.progress", description = "Serving replicas out of those desired"),
    printcolumn(name = "Blocked-By", type_ = "string", json_path = ".status.blockedBy.name", description = "The first object that is not ready"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.blockedBy.reason", description = "Reason why that object is not ready"),
    printcolumn(name = "Template", type_ = "string", json_path = ".spec.template", description = "Name of the configured template", priority = "1"),
    printcolumn(name = "Revision", type_ = "integer", json_path = ".status.revision", description = "Number of the revision that the child is on", priority = "1"),
    printcolumn(name = "Next-Retry", type_ = "string", json_path = ".status.blockedBy.nextRetry", description = "Time by which the controller of that object retries", priority = "1"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].message", description = "Message of the condition Ready", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) <= 52").message("metadata.name must have at most 52 characters, because names of the child and of pods are made from it: choose a shorter name")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = schema::budget_is_not_zero(), validation = schema::deadline_is_above_min_ready())]
pub struct BasicDeploymentSpec {
    /// Number of desired replicas.
    #[serde(default = "schema::one_replica")]
    #[schemars(range(min = 0, max = 10_000))]
    pub replicas: i32,
    /// Name of the template that the child is rendered from, as configured in the controller.
    #[serde(default = "schema::default_template")]
    #[schemars(length(min = 1, max = 63))]
    pub template: String,
    /// Values for the template. A value cannot change the structure of the rendered object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub parameters: BTreeMap<String, String>,
    /// While true, changes to the template and the parameters are not applied, and commands wait. Other changes, such as
    /// scaling, still take effect.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub paused: bool,
    /// Seconds without progress after which a rollout is reported as stalled, with the reason
    /// `ProgressDeadlineExceeded`. The rollout itself continues. Progress is a higher number of updated, serving or available
    /// replicas than any before, of the same revision. It must be greater than `minReadySeconds`, also where the template sets
    /// that.
    #[serde(default = "schema::progress_deadline")]
    #[schemars(range(min = 1, max = 86_400))]
    pub progress_deadline_seconds: i32,
    /// Number of old revisions to keep for rollbacks.
    #[serde(default = "schema::revision_history_limit")]
    #[schemars(range(min = 0, max = 1_000))]
    pub revision_history_limit: i32,
    /// Number of replicas that all children together may have above `replicas` while one child is exchanged for
    /// another one, of another kind or name, or a percentage of `replicas`, rounded up. Replacements of pods within
    /// one child follow the budget of that child.
    #[serde(default = "schema::quarter")]
    #[x_kube(validation = Rule::new("type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[1-9]?[0-9])%$')").message("must be a number from 0 to 10000 or a percentage such as \"25%\""))]
    pub max_surge: IntOrString,
    /// Number of `replicas` that may be unavailable while one child is exchanged for another one, or a percentage of
    /// `replicas`, rounded down. If both budgets come out as 0, one replica may be unavailable.
    #[serde(default = "schema::quarter")]
    #[x_kube(validation = Rule::new("type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[1-9]?[0-9])%$')").message("must be a number from 0 to 10000 or a percentage such as \"25%\""))]
    pub max_unavailable: IntOrString,
    /// Number of seconds for which a replica has to be ready before it counts as available: no other one is removed in its
    /// place before. It is handed to the child. By default, the template decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// When another replica may take the place of one that is removed: as soon as that terminates (`TerminationStarted`), or
    /// once it is gone (`TerminationComplete`), for which `ready` then also waits. It is handed to the child, and holds between
    /// children that are exchanged. By default, the template decides, and an exchange does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = ["TerminationStarted", "TerminationComplete"]))]
    pub pod_replacement_policy: Option<PodReplacementPolicy>,
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
            max_surge: schema::quarter(),
            max_unavailable: schema::quarter(),
            min_ready_seconds: None,
            pod_replacement_policy: None,
        }
    }
}

/// The last observed state. It is rebuilt from observation. Decisions use it only for a stall that an earlier process
/// reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicDeploymentStatus {
    /// Generation of the spec that this status refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether all desired replicas serve the desired revision. That is the current rendering of the template,
    /// or the older revision that a rollback chose. It is false while the object is being deleted.
    #[serde(default)]
    pub ready: bool,
    /// Number of replicas that serve, of any revision and of all children.
    #[serde(default)]
    pub active: i32,
    /// Number of replicas that the specs of all children ask for. There are several while one is exchanged for
    /// another.
    #[serde(default)]
    pub replicas: i32,
    /// Serving replicas out of those desired, for example `3/3`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub progress: String,
    /// Number of the revision that the child is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Label selector of the pods, for the scale subresource. While children are exchanged, it is that of the child
    /// with the most serving replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The child that runs the replicas, or is about to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildStatus>,
    /// Children of former renderings that still exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_children: Vec<ChildStatus>,
    /// First object down the chain that is not ready, with the reason. It is this object itself if its controller
    /// cannot proceed, or if it is being deleted and a finalizer keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
    /// Conditions. `Ready` and `Progressing` are always present; `Reconciling`, `Stalled`, `RolledBack` and
    /// `UnreadParameters` are present only while they are true.
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
    /// SHA-256 of the text that the child was rendered to.
    pub hash: String,
}
