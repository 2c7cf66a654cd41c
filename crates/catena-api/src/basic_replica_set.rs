use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{apis::meta::v1::Condition, util::intstr::IntOrString};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{BlockedBy, PodReplacementPolicy, schema};

/// The desired state: a number of pods of one template, replaced within a budget when the template changes.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "catena.dev",
    version = "v1alpha1",
    kind = "BasicReplicaSet",
    namespaced,
    doc = "BasicReplicaSet keeps the desired number of pods of a configured template running, and replaces them within a budget when the template changes. It honours version v1 of the replica contract.",
    status = "BasicReplicaSetStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "brs",
    category = "catena",
    label("contract.catena.dev/replicas", "v1"),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas", description = "Number of desired pods"),
    printcolumn(name = "Current", type_ = "integer", json_path = ".status.replicas", description = "Number of pods that exist and are neither finished nor terminating"),
    printcolumn(name = "Active", type_ = "integer", json_path = ".status.active", description = "Number of pods that are ready"),
    printcolumn(name = "Updated", type_ = "integer", json_path = ".status.updated", description = "Number of pods of the current template"),
    printcolumn(name = "Blocked-By", type_ = "string", json_path = ".status.blockedBy.name", description = "The first pod that is not ready"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.blockedBy.reason", description = "Reason why that pod is not ready"),
    printcolumn(name = "Next-Retry", type_ = "string", json_path = ".status.blockedBy.nextRetry", description = "Time by which the controller of that object retries", priority = "1"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].message", description = "Message of the condition Ready", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) <= 52").message("metadata.name must have at most 52 characters, because names of pods are made from it: choose a shorter name")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = schema::budget_is_not_zero())]
pub struct BasicReplicaSetSpec {
    /// Number of desired pods.
    #[serde(default = "schema::one_replica")]
    #[schemars(range(min = 0, max = 10_000))]
    pub replicas: i32,
    /// Name of the template that pods are rendered from, as configured in the controller.
    #[serde(default = "schema::default_template")]
    #[schemars(length(min = 1, max = 63))]
    pub template: String,
    /// Values for the template. A value cannot change the structure of the rendered object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub parameters: BTreeMap<String, String>,
    /// Restart token, by convention an RFC 3339 time. Pods created under another value are replaced. The value is
    /// only compared for equality, never with a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub restarted_at: Option<String>,
    /// Number of pods that may exist above `replicas` during a replacement, or a percentage of `replicas`, rounded
    /// up.
    #[serde(default = "schema::quarter")]
    #[x_kube(validation = Rule::new("type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[1-9]?[0-9])%$')").message("must be a number from 0 to 10000 or a percentage such as \"25%\""))]
    pub max_surge: IntOrString,
    /// Number of `replicas` that may be unavailable during a replacement, or a percentage of `replicas`, rounded
    /// down. If both budgets come out as 0, one pod may be unavailable.
    #[serde(default = "schema::quarter")]
    #[x_kube(validation = Rule::new("type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[1-9]?[0-9])%$')").message("must be a number from 0 to 10000 or a percentage such as \"25%\""))]
    pub max_unavailable: IntOrString,
    /// Number of seconds for which a pod has to be ready before it counts as serving. Until then, no other pod is deleted
    /// in its place.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: i32,
    /// When a pod may be created in place of one that is deleted: as soon as that terminates (`TerminationStarted`), or once
    /// it is gone (`TerminationComplete`). With the latter, a terminating pod counts for `maxSurge`, and `Ready` waits until
    /// none is left.
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["TerminationStarted", "TerminationComplete"]))]
    pub pod_replacement_policy: PodReplacementPolicy,
}

impl Default for BasicReplicaSetSpec {
    fn default() -> Self {
        Self {
            replicas: schema::one_replica(),
            template: schema::default_template(),
            parameters: BTreeMap::new(),
            restarted_at: None,
            max_surge: schema::quarter(),
            max_unavailable: schema::quarter(),
            min_ready_seconds: 0,
            pod_replacement_policy: PodReplacementPolicy::default(),
        }
    }
}

/// The last observed state. It is rebuilt from observation, and no decision is based on it except on `lastServed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicReplicaSetStatus {
    /// Generation of the spec that this status refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of pods that exist and are neither finished nor terminating.
    #[serde(default)]
    pub replicas: i32,
    /// Number of pods that are ready and not terminating, for however short a time.
    #[serde(default)]
    pub active: i32,
    /// Number of pods that are ready for `spec.minReadySeconds` or longer and not terminating.
    #[serde(default)]
    pub available: i32,
    /// Number of pods that are being deleted and not gone. It is reported only with `TerminationComplete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminating: Option<i32>,
    /// Number of pods of the current template and restart token, ready or not.
    #[serde(default)]
    pub updated: i32,
    /// The revision that proved itself last: as many of its pods served at once as one step of the budget replaces. Until
    /// the present revision has proven itself, pods that are missing below the budget are made from this one. It is
    /// forgotten when `spec.replicas` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_served: Option<LastServed>,
    /// Label selector of the pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// First pod that is not ready, with the reason; or one that ended by itself, until its successor serves. It is this
    /// object itself if its controller cannot proceed, or if it is being deleted and a finalizer keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
    /// Conditions. `Ready` is always present; `Reconciling`, `Stalled` and `UnreadParameters` are present only
    /// while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// A revision of a `BasicReplicaSet` that proved itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastServed {
    /// The revision: the annotation `catena.dev/template-hash` of its pods.
    pub revision: String,
    /// The rendered pod (JSON). It is empty if that is longer than 256 KiB; then no pods are made from it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// `spec.restartedAt` at that time, which is a part of the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<String>,
}
