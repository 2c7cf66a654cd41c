//! The kind, with the fields of the replica contract.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The desired state: a number of Jobs, each of which runs one worker.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "JobReplicas",
    plural = "jobreplicas",
    namespaced,
    doc = "JobReplicas runs each of its replicas as a Job.",
    status = "JobReplicasStatus",
    derive = "Default",
    derive = "PartialEq",
    label("contract.catena.dev/replicas", "v1"),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.active",
        label_selector_path = ".status.selector"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct JobReplicasSpec {
    /// Number of desired Jobs.
    #[schemars(range(min = 0, max = 1_000))]
    pub replicas: i32,
    /// Image of the worker.
    pub image: String,
    /// Annotations of the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_annotations: BTreeMap<String, String>,
    /// Restart token: Jobs that were created under another value are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<String>,
}

/// The last observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobReplicasStatus {
    /// Generation of the spec that this status refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of Jobs whose worker is ready.
    #[serde(default)]
    pub active: i32,
    /// Number of Jobs of the current image and token, ready or not.
    #[serde(default)]
    pub updated: i32,
    /// Label selector of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// First Job that is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
    /// Conditions: `Ready`, and `Stalled` while it is true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// An object that is not ready.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockedBy {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// One word.
    pub reason: String,
    /// For people.
    #[serde(default)]
    pub message: String,
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;

    use super::JobReplicas;

    /// `JOB_REPLICAS_WRITE_CRD=1 cargo test --package job-replicas` writes it anew.
    #[test]
    fn the_definition_in_the_file_is_that_of_the_types() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/crd.yaml");
        let first = "# Written by: JOB_REPLICAS_WRITE_CRD=1 cargo test --package job-replicas\n";
        let text = format!("{first}{}", serde_saphyr::to_string(&JobReplicas::crd()).unwrap());
        if std::env::var_os("JOB_REPLICAS_WRITE_CRD").is_some() {
            std::fs::write(file, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), text);
    }
}
