//! The kinds of a server, and the names that users have for them.

use anyhow::{Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Client, Resource,
    api::ListParams,
    core::{
        DynamicObject, GroupVersionKind, TypeMeta,
        discovery::v2::{APIGroupDiscovery, APIResourceDiscovery},
    },
    discovery::ApiResource,
};
use serde_json::{Value, value::RawValue};
use strsim::levenshtein;

use super::{Cluster, Identity};

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
    /// In lower case, without its group.
    names: Vec<String>,
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
        Ok(Self::of_groups(core.items.iter().chain(&others.items)))
    }

    /// The kinds of these groups.
    pub(super) fn of_groups<'g>(groups: impl IntoIterator<Item = &'g APIGroupDiscovery>) -> Self {
        Self(groups.into_iter().flat_map(kinds_of).collect())
    }

    /// Prefers the version in which the objects of a definition are stored, if it is served.
    fn prefer_storage(&mut self, definition: &Value) {
        let mut versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        let Some(storage) = versions.find(|version| version["storage"] == true) else { return };
        let is_it = |kind: &Kind| definition["metadata"]["name"] == kind.full_name();
        let is_stored = |kind: &Kind| storage["name"] == kind.resource.version;
        if self.0.iter().any(|kind| is_it(kind) && is_stored(kind)) {
            for kind in self.0.iter_mut().filter(|kind| is_it(kind)) {
                kind.is_preferred = is_stored(kind);
            }
        }
    }

    /// All of them, each in the version that the server prefers.
    pub fn preferred(&self) -> impl Iterator<Item = &Kind> {
        self.0.iter().filter(|kind| kind.is_preferred)
    }

    /// The kind that a user names, such as `pods`, `pod`, `po`, `Pod`, `deployments.apps`, `deployments.v1.apps`, or with the
    /// beginning of the group.
    pub fn find(&self, word: &str) -> Result<&Kind> {
        let word_lower = word.to_lowercase();
        let (name, group) =
            word_lower.split_once('.').map_or((word_lower.as_str(), None), |(n, g)| (n, Some(g)));
        let is_named = |kind: &&Kind| kind.names.iter().any(|known| known == name);
        let is_in_group = |kind: &&Kind| match group {
            None => kind.is_preferred,
            Some(group) if group == kind.resource.group => kind.is_preferred,
            Some(group) => group == format!("{}.{}", kind.resource.version, kind.resource.group),
        };
        let begins_group = |kind: &&Kind| {
            let begins = |group: &str| !group.contains('.') && kind.resource.group.starts_with(group);
            kind.is_preferred && group.is_some_and(begins)
        };
        let mut named = self.0.iter().filter(is_named);
        if let Some(kind) = named.clone().find(is_in_group).or_else(|| named.find(begins_group)) {
            return Ok(kind);
        }
        // A third of a short name may be anything.
        let is_near = |known: &String| known.contains(name) || levenshtein(known, name) <= name.len() / 3;
        let near = self.preferred().filter(|kind| name.len() >= 3 && kind.names.iter().any(is_near));
        let near: Vec<&str> = near.map(|kind| kind.resource.plural.as_str()).take(5).collect();
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
    #[must_use]
    pub fn of(&self, identity: &Identity) -> Option<&Kind> {
        let is_it =
            |kind: &&Kind| kind.resource.kind == identity.kind && kind.resource.group == identity.group();
        let mut versions = self.0.iter().filter(is_it);
        let exact = versions.clone().find(|kind| kind.resource.api_version == identity.api_version);
        exact.or_else(|| versions.next())
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
    #[must_use]
    pub fn named(&self, group: &str, plural: &str) -> Option<&Kind> {
        self.preferred().find(|kind| kind.resource.group == group && kind.resource.plural == plural)
    }

    /// The kind of a [full name](Kind::full_name), which is that of its definition, in the version that the server prefers.
    #[must_use]
    pub fn defined_by(&self, name: &str) -> Option<&Kind> {
        self.preferred().find(|kind| kind.full_name() == name)
    }

    /// A kind in the version that is preferred.
    #[must_use]
    pub fn preferred_of<'k>(&'k self, kind: &'k Kind) -> &'k Kind {
        self.defined_by(&kind.full_name()).unwrap_or(kind)
    }
}

impl Cluster {
    /// The same cluster, but it prefers of each kind the version in which its objects are stored, if that is served: the server drops
    /// from any other one what that lacks.
    ///
    /// # Errors
    /// When a kind has several versions, and definitions cannot be listed.
    pub async fn in_storage_versions(&self) -> Result<Self> {
        let (mut cluster, kind) = (self.clone(), Kind::definitions());
        // The group of a definition has a dot.
        let is_another_version = |kind: &Kind| !kind.is_preferred && kind.resource.group.contains('.');
        if !self.kinds.0.iter().any(is_another_version) {
            return Ok(cluster);
        }
        // Schemas are large.
        let mut pages = self.pages(&kind, None, ListParams::default().limit(25));
        let refused = |error| self.refused(&kind, "", "list", error);
        while let Some(page) = pages.next::<Box<RawValue>>().await.map_err(refused)? {
            for definition in page.iter().filter_map(|text| serde_json::from_str(text.get()).ok()) {
                cluster.kinds.prefer_storage(&definition);
            }
        }
        Ok(cluster)
    }
}

impl Kind {
    /// A kind of which only the resource is known.
    #[must_use]
    pub fn of(resource: ApiResource, is_namespaced: bool) -> Self {
        let (names, categories) = (Vec::new(), Vec::new());
        Self { resource, is_namespaced, is_listed: true, is_preferred: true, names, categories }
    }

    /// The kind of the definitions of kinds.
    #[must_use]
    pub fn definitions() -> Self {
        Self::of(ApiResource::erase::<CustomResourceDefinition>(&()), false)
    }

    /// The URL of its objects in a namespace, or in all.
    #[must_use]
    pub fn url(&self, namespace: Option<&str>) -> String {
        DynamicObject::url_path(&self.resource, namespace.filter(|_| self.is_namespaced))
    }

    /// The type of its objects.
    #[must_use]
    pub fn types(&self) -> TypeMeta {
        let ApiResource { api_version, kind, .. } = self.resource.clone();
        TypeMeta { api_version, kind }
    }

    /// Its name, as of its definition: `PLURAL.GROUP`, or `PLURAL` for a core kind.
    #[must_use]
    pub fn full_name(&self) -> String {
        let ApiResource { plural, group, .. } = &self.resource;
        if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") }
    }

    /// Whether it is one of these, in whatever version.
    #[must_use]
    pub fn is_among(&self, kinds: &[Self]) -> bool {
        kinds.iter().any(|kind| kind.full_name() == self.full_name())
    }
}

fn kinds_of(group: &APIGroupDiscovery) -> Vec<Kind> {
    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone()).unwrap_or_default();
    let mut kinds: Vec<Kind> = Vec::new();
    for version in &group.versions {
        let of = version.version.clone().unwrap_or_default();
        for kind in version.resources.iter().filter_map(|resource| kind_of(&name, &of, resource)) {
            // Versions come in the server's order of preference.
            let is_preferred = !kinds.iter().any(|known| known.resource.plural == kind.resource.plural);
            kinds.push(Kind { is_preferred, ..kind });
        }
    }
    kinds
}

fn kind_of(group: &str, version: &str, resource: &APIResourceDiscovery) -> Option<Kind> {
    let kind = resource.response_kind.as_ref()?.kind.clone()?;
    let can = |verb: &str| resource.verbs.iter().any(|known| known == verb);
    let plural = resource.resource.clone().unwrap_or_default();
    let names = [plural.clone(), kind.to_lowercase()].into_iter().chain(resource.singular_resource.clone());
    let names = names.chain(resource.short_names.clone()).collect();
    let kind = GroupVersionKind::gvk(group, version, &kind);
    let resource_of = ApiResource::from_gvk_with_plural(&kind, &plural);
    can("get").then(|| Kind {
        is_listed: can("list"),
        names,
        categories: resource.categories.clone(),
        ..Kind::of(resource_of, resource.scope.as_deref() == Some("Namespaced"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::kinds;

    #[test]
    fn a_kind_is_found_by_every_name_that_kubectl_accepts() {
        let kinds = kinds();
        for word in [
            "deploy",
            "Deployment",
            "deployments",
            "deployment",
            "deployments.apps",
            "deployments.v1.apps",
            "deployments.ap",
        ] {
            assert_eq!(kinds.find(word).unwrap().resource.api_version, "apps/v1", "{word}");
        }
        assert_eq!(kinds.find("basicdeployments.catena").unwrap().resource.group, "catena.dev");
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
        assert!(error("bde").ends_with("did you mean basicdeployments, basicdeploymentrestarts?"));
    }
}
