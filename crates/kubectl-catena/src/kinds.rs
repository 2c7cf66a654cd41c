//! The kinds of a server, and the names that users have for them.

use anyhow::{Result, bail};
use kube::{
    Client,
    core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery},
    discovery::ApiResource,
};
use strsim::levenshtein;

use crate::object::Identity;

/// A kind that the server has.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Its resource.
    pub resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// Whether its objects can be listed.
    pub is_listed: bool,
    is_preferred: bool,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
}

/// All kinds of a server.
#[derive(Clone, Debug, Default)]
pub struct Kinds(Vec<Kind>);

impl Kinds {
    /// Asks the server, with two requests.
    pub async fn discover(client: &Client) -> kube::Result<Self> {
        let (core, others) = futures::try_join!(
            client.list_core_api_versions_aggregated(),
            client.list_api_groups_aggregated()
        )?;
        Ok(Self(core.items.iter().chain(&others.items).flat_map(kinds_of).collect()))
    }

    /// All of them, each in the version that the server prefers.
    pub fn preferred(&self) -> impl Iterator<Item = &Kind> {
        self.0.iter().filter(|kind| kind.is_preferred)
    }

    /// The kind that a user names, such as `pods`, `pod`, `po`, `Pod`, `deployments.apps`, `deployments.v1.apps`.
    pub fn find(&self, word: &str) -> Result<&Kind> {
        let word_lower = word.to_lowercase();
        let (name, group) =
            word_lower.split_once('.').map_or((word_lower.as_str(), None), |(n, g)| (n, Some(g)));
        let is_named = |kind: &&Kind| {
            kind.resource.plural == name
                || kind.singular == name
                || kind.resource.kind.to_lowercase() == name
                || kind.short_names.iter().any(|short| short == name)
        };
        let is_in_group = |kind: &&Kind| match group {
            None => kind.is_preferred,
            Some(group) if group == kind.resource.group => kind.is_preferred,
            Some(group) => group == format!("{}.{}", kind.resource.version, kind.resource.group),
        };
        if let Some(kind) = self.0.iter().filter(is_named).find(is_in_group) {
            return Ok(kind);
        }
        let near: Vec<&str> = self
            .preferred()
            .map(|kind| kind.resource.plural.as_str())
            .filter(|plural| name.len() >= 3 && (plural.contains(name) || levenshtein(plural, name) <= 3))
            .take(5)
            .collect();
        let why = if !near.is_empty() {
            format!("did you mean {}?", near.join(", "))
        } else if group == Some(catena_api::keys::GROUP) || name.starts_with("basic") {
            "the chart of its controller installs its CRD".to_owned()
        } else {
            "`kubectl api-resources` lists all kinds".to_owned()
        };
        bail!("the server has no kind {word:?}: {why}")
    }

    /// The kind of a referenced object.
    pub fn of(&self, identity: &Identity) -> Option<&Kind> {
        let is_it =
            |kind: &&Kind| kind.resource.kind == identity.kind && kind.resource.group == identity.group();
        let mut versions = self.0.iter().filter(is_it);
        let exact = versions.clone().find(|kind| kind.resource.api_version == identity.api_version);
        exact.or_else(|| versions.next())
    }

    /// The kind of the definitions of kinds.
    pub fn definitions(&self) -> Result<&Kind> {
        self.find("customresourcedefinitions.apiextensions.k8s.io")
    }

    /// The kinds of a group, in the version that the server prefers.
    pub fn in_group<'k>(&'k self, group: &'k str) -> impl Iterator<Item = &'k Kind> {
        self.preferred().filter(move |kind| kind.resource.group == group)
    }

    /// The kinds of a category, such as `all`, in the version that the server prefers.
    pub fn in_category<'k>(&'k self, category: &'k str) -> impl Iterator<Item = &'k Kind> {
        self.preferred().filter(move |kind| kind.categories.iter().any(|known| known == category))
    }

    /// The kind of a plural name in a group, in the version that the server prefers.
    pub fn named(&self, group: &str, plural: &str) -> Option<&Kind> {
        self.preferred().find(|kind| kind.resource.group == group && kind.resource.plural == plural)
    }
}

impl Kind {
    /// A kind of which only the resource is known.
    pub fn of(resource: ApiResource, is_namespaced: bool) -> Self {
        Self {
            resource,
            is_namespaced,
            is_listed: true,
            is_preferred: true,
            singular: String::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
        }
    }

    /// The same kind in another version.
    pub fn in_version(mut self, version: &str) -> Self {
        self.resource.api_version = format!("{}/{version}", self.resource.group);
        version.clone_into(&mut self.resource.version);
        self
    }

    /// Its name, as of its definition: `PLURAL.GROUP`, or `PLURAL` for a core kind.
    pub fn full_name(&self) -> String {
        let ApiResource { plural, group, .. } = &self.resource;
        if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") }
    }

    /// Whether it is one of these, in whatever version.
    pub fn is_among(&self, kinds: &[Self]) -> bool {
        let place = |kind: &Self| (kind.resource.group.clone(), kind.resource.plural.clone());
        kinds.iter().any(|kind| place(kind) == place(self))
    }
}

fn kinds_of(group: &APIGroupDiscovery) -> Vec<Kind> {
    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone()).unwrap_or_default();
    let mut kinds: Vec<Kind> = Vec::new();
    for version in &group.versions {
        let of = version.version.clone().unwrap_or_default();
        for resource in &version.resources {
            if let Some(mut kind) = kind_of(&name, &of, resource) {
                // Versions come in the server's order of preference.
                kind.is_preferred = !kinds.iter().any(|known| known.resource.plural == kind.resource.plural);
                kinds.push(kind);
            }
        }
    }
    kinds
}

fn kind_of(group: &str, version: &str, resource: &APIResourceDiscovery) -> Option<Kind> {
    let kind = resource.response_kind.as_ref()?.kind.clone()?;
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let can = |verb: &str| resource.verbs.iter().any(|known| known == verb);
    can("get").then(|| Kind {
        resource: ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind,
            plural: resource.resource.clone().unwrap_or_default(),
        },
        is_namespaced: resource.scope.as_deref() == Some("Namespaced"),
        is_listed: can("list"),
        is_preferred: true,
        singular: resource.singular_resource.clone().unwrap_or_default(),
        short_names: resource.short_names.clone(),
        categories: resource.categories.clone(),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// A server with some kinds.
    pub fn kinds() -> Kinds {
        let resource = |plural: &str, kind: &str, short: &str| {
            json!({
                "resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": "Namespaced",
                "singularResource": kind.to_lowercase(), "verbs": ["get", "list", "create"], "shortNames": short.split(',').collect::<Vec<_>>(),
            })
        };
        let group = |name: &str, version: &str, resources: &[serde_json::Value]| -> APIGroupDiscovery {
            let group = json!({"metadata": {"name": name}, "versions": [{"version": version, "resources": resources}]});
            serde_json::from_value(group).unwrap()
        };
        let mut definitions = resource("customresourcedefinitions", "CustomResourceDefinition", "crd");
        let mut namespaces = resource("namespaces", "Namespace", "ns");
        for wide in [&mut definitions, &mut namespaces] {
            wide["scope"] = "Cluster".into();
        }
        let groups = [
            group("apiextensions.k8s.io", "v1", &[definitions]),
            group(
                "",
                "v1",
                &[
                    resource("pods", "Pod", "po"),
                    resource("secrets", "Secret", ""),
                    resource("services", "Service", "svc"),
                    namespaces,
                ],
            ),
            group("acme.dev", "v1", &[resource("reindexes", "Reindex", "")]),
            group(
                "apps",
                "v1",
                &[
                    resource("deployments", "Deployment", "deploy"),
                    resource("statefulsets", "StatefulSet", "sts"),
                    resource("controllerrevisions", "ControllerRevision", ""),
                ],
            ),
            group(
                "catena.dev",
                "v1alpha1",
                &[
                    resource("basicdeployments", "BasicDeployment", "bd,bdep"),
                    resource("basicreplicasets", "BasicReplicaSet", "brs"),
                    resource("basicdeploymentrestarts", "BasicDeploymentRestart", "bdr"),
                ],
            ),
        ];
        Kinds(groups.iter().flat_map(kinds_of).collect())
    }

    #[test]
    fn a_kind_is_found_by_every_name_that_kubectl_accepts() {
        let kinds = kinds();
        for word in
            ["deploy", "Deployment", "deployments", "deployment", "deployments.apps", "deployments.v1.apps"]
        {
            assert_eq!(kinds.find(word).unwrap().resource.api_version, "apps/v1", "{word}");
        }
    }

    #[test]
    fn an_unknown_kind_is_answered_with_a_remedy() {
        let kinds = kinds();
        let error = |word: &str| kinds.find(word).unwrap_err().to_string();
        assert!(
            error("deployment.extensions")
                .contains("did you mean deployments, basicdeployments, basicdeploymentrestarts?")
        );
        assert!(error("basicthing").contains("the chart of its controller"));
        assert!(error("xyz").contains("kubectl api-resources"));
    }
}
