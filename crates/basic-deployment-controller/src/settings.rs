//! The settings.

use std::collections::BTreeMap;

use catena_api::{
    contract::{PodController, Pods},
    keys,
};
use kube::{core::GroupVersionKind, discovery::ApiResource};
use operator_kit::{render::Templates, run::Validate};
use serde::Deserialize;

use crate::outputs::Mapping;

/// The settings.
#[derive(Deserialize)]
#[serde(from = "File")]
pub struct Settings {
    /// The kind of the children.
    pub child: ChildKind,
    /// The templates of children, by the name that `spec.template` refers to.
    pub templates: Templates,
    is_empty: bool,
}

/// A kind that honours the replica contract, possibly under other names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildKind {
    /// Its API version, for example `apps/v1`.
    pub api_version: String,
    /// Its kind, for example `Deployment`.
    pub kind: String,
    /// Its name in URLs, for example `deployments`; the kind in lower case with an s by default.
    pub resource: Option<String>,
    /// The places of the fields of the contract.
    #[serde(default)]
    pub contract: Mapping,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    child: ChildKind,
    templates: BTreeMap<String, String>,
}

impl From<File> for Settings {
    fn from(file: File) -> Self {
        Self {
            child: file.child,
            templates: Templates::compile(&file.templates),
            is_empty: file.templates.is_empty(),
        }
    }
}

impl ChildKind {
    /// The kind as the API server knows it.
    #[must_use]
    pub fn api_resource(&self) -> ApiResource {
        api_resource(&self.api_version, &self.kind, self.resource.as_deref())
    }

    /// Whether the children would have children of their own.
    fn is_itself(&self) -> bool {
        let resource = self.api_resource();
        (resource.group.as_str(), resource.kind.as_str()) == (keys::GROUP, "BasicDeployment")
    }
}

/// A kind as the API server knows it.
#[must_use]
pub fn api_resource(api_version: &str, kind: &str, plural: Option<&str>) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    match plural {
        Some(plural) => ApiResource::from_gvk_with_plural(&kind, plural),
        None => ApiResource::from_gvk(&kind),
    }
}

/// The mistakes in where a kind says that its pods are.
fn problems_of_pods(pods: &Pods) -> impl Iterator<Item = String> {
    let fields = pods.controller.iter().flat_map(|PodController { api_version, kind, resource, .. }| {
        [
            ("apiVersion", api_version, "apps/v1"),
            ("kind", kind, "ReplicaSet"),
            ("resource", resource, "replicasets"),
        ]
    });
    fields.filter(|(_, value, _)| value.is_empty()).map(|(field, _, example)| {
        format!(
            "child.contract.pods.controller.{field}: is empty; set it to that of the kind that controls the pods, such as {example}"
        )
    })
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        if self.is_empty {
            problems.push("templates: is empty; add a template, by convention under the name default".into());
        }
        if self.child.api_version.is_empty() {
            problems.push(
                "child.apiVersion: is empty; set it to the API version of the child's kind, such as apps/v1"
                    .into(),
            );
        }
        if self.child.kind.is_empty() {
            problems.push(
                "child.kind: is empty; set it to the kind of the children, such as BasicReplicaSet".into(),
            );
        }
        if self.child.is_itself() {
            problems.push(
                "child.kind: a BasicDeployment whose child is a BasicDeployment would have children without end; set it to another kind, such as BasicReplicaSet"
                    .into(),
            );
        }
        if !self.child.contract.contract.says_ready() {
            problems.push(
                "child.contract.ready: is missing; active and updated of another kind do not tell whether an old replica is counted for a new one, so state when all replicas are new and serve, as a path or as an expression: {cel: …}"
                    .into(),
            );
        }
        problems.extend(self.child.contract.contract.pods.iter().flat_map(problems_of_pods));
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn warnings(&self) -> Vec<String> {
        let problems = self.templates.problems(&self.child.api_version, &self.child.kind);
        problems.iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kind_is_used_by_naming_its_fields() {
        let settings: Settings = serde_json::from_value(serde_json::json!({
            "child": {"apiVersion": "apps/v1", "kind": "Deployment", "contract": {"active": "status.readyReplicas", "ready": "status.ready"}},
            "templates": {"default": "x"},
        }))
        .unwrap();
        assert_eq!(settings.child.api_resource().plural, "deployments");
        assert_eq!(settings.child.contract.contract.active.to_string(), "status.readyReplicas");
        assert_eq!(settings.child.contract.contract.replicas.to_string(), "spec.replicas");
    }

    #[test]
    fn a_chain_without_an_end_is_refused() {
        for version in ["v1alpha1", "v2"] {
            let child =
                serde_json::json!({"apiVersion": format!("catena.dev/{version}"), "kind": "BasicDeployment"});
            let settings = serde_json::json!({"child": child, "templates": {"default": "x"}});
            let settings: Settings = serde_json::from_value(settings).unwrap();
            assert!(settings.validate().unwrap_err()[0].starts_with("child.kind: "));
        }
    }

    #[test]
    fn a_controller_of_pods_that_is_not_named_is_refused() {
        let controller = serde_json::json!({"apiVersion": "apps/v1", "kind": "", "resource": "replicasets"});
        let contract = serde_json::json!({"pods": {"selector": "status.selector", "controller": controller}});
        let child = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "contract": contract});
        let settings: Settings =
            serde_json::from_value(serde_json::json!({"child": child, "templates": {"default": "x"}}))
                .unwrap();
        let problems = settings.validate().unwrap_err();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("child.contract.pods.controller.kind: is empty"), "{problems:?}");
    }

    #[test]
    fn each_mistake_names_its_field() {
        let settings: Settings = serde_json::from_value(
            serde_json::json!({"child": {"apiVersion": "", "kind": "", "contract": {"active": "status.x"}}, "templates": {}}),
        )
        .unwrap();
        let problems = settings.validate().unwrap_err();
        assert_eq!(problems.len(), 4);
        assert!(problems.iter().all(|problem| problem.contains("templates:") || problem.contains("child.")));
    }
}
