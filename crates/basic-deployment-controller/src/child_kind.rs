//! A kind of children.

use catena_api::contract::ReplicaContract;
use kube::{core::GroupVersionKind, discovery::ApiResource};
use replica_contract::Mapping;
use serde::Deserialize;
use serde_json::Value;

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

impl ChildKind {
    /// The kind as the API server knows it.
    #[must_use]
    pub fn api_resource(&self) -> ApiResource {
        api_resource(&self.api_version, &self.kind, self.resource.as_deref())
    }

    /// Whether a rendered object is of this kind.
    #[must_use]
    pub fn renders(&self, object: &Value) -> bool {
        (object["apiVersion"].as_str(), object["kind"].as_str())
            == (Some(&self.api_version), Some(&self.kind))
    }

    /// Its API version and kind.
    #[must_use]
    pub fn name(&self) -> (&str, &str) {
        (&self.api_version, &self.kind)
    }

    /// The places of the fields of the contract, as they are written in the settings.
    #[must_use]
    pub fn fields(&self) -> &ReplicaContract {
        &self.contract.contract
    }

    /// Whether it is this kind, possibly in another version.
    #[must_use]
    pub fn is(&self, kind: (&str, &str)) -> bool {
        (group(&self.api_version), &*self.kind) == (group(kind.0), kind.1)
    }
}

/// A kind as the API server knows it; its plural is the kind in lower case with an s by default.
#[must_use]
pub fn api_resource(api_version: &str, kind: &str, plural: Option<&str>) -> ApiResource {
    let version = api_version.split_once('/').map_or(api_version, |(_, version)| version);
    let kind = GroupVersionKind::gvk(group(api_version), version, kind);
    match plural {
        Some(plural) => ApiResource::from_gvk_with_plural(&kind, plural),
        None => ApiResource::from_gvk(&kind),
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
