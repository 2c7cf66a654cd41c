use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::{Deserialize, Serialize};

use super::Output;

/// The pods of a kind that does not report which of them keeps it from serving: the parent looks for that pod itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pods {
    /// Label selector of the pods, as text.
    pub selector: Output,
    /// The kind of the pods' controllers; by default, the child itself controls its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<PodController>,
}

/// A kind that controls pods for a child, such as the `ReplicaSet` of a `Deployment`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodController {
    /// Its API version, for example `apps/v1`.
    pub api_version: String,
    /// Its kind, for example `ReplicaSet`.
    pub kind: String,
    /// Its name in URLs, for example `replicasets`.
    pub resource: String,
    /// An annotation that has the same value on the child and on the controller of the pods with the current template. The
    /// pods of other controllers are not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_annotation: Option<String>,
}

impl PodController {
    /// Whether an owner reference names this kind, in any version.
    #[must_use]
    pub fn is_kind_of(&self, owner: &OwnerReference) -> bool {
        let group = |version: &str| version.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
        self.kind == owner.kind && group(&self.api_version) == group(&owner.api_version)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_controller_of_pods_is_known_by_its_group_and_kind() {
        let pods: Pods = serde_json::from_value(json!({
            "selector": "status.selector",
            "controller": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "resource": "replicasets"},
        }))
        .unwrap();
        let is_kind_of = |version: &str, kind: &str| {
            let owner =
                OwnerReference { api_version: version.into(), kind: kind.into(), ..Default::default() };
            pods.controller.as_ref().unwrap().is_kind_of(&owner)
        };
        assert!(is_kind_of("apps/v1", "ReplicaSet") && is_kind_of("apps/v1beta2", "ReplicaSet"));
        assert!(!is_kind_of("apps.example.org/v1", "ReplicaSet") && !is_kind_of("apps/v1", "Other"));
    }
}
