//! A `CustomResourceDefinition` as a file or a server holds it.

use anyhow::{Result, bail, ensure};
use catena_api::keys;
use catena_cluster::{Change, Cluster, How, Kind, errors};
use kube::{core::GroupVersionKind, discovery::ApiResource};
use operator_watch::ObjectId;
use serde_json::{Value, json};

/// A definition with at least one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition(Value);

impl Definition {
    /// Checks that a document is a definition of the current API version.
    ///
    /// # Errors
    /// When it is another API version, or lacks a field that every definition has.
    pub fn new(document: Value) -> Result<Self> {
        let version = document["apiVersion"].as_str().unwrap_or_default();
        if version != "apiextensions.k8s.io/v1" {
            bail!("its apiVersion is {version:?}, but only apiextensions.k8s.io/v1 is served: convert it");
        }
        let definition = Self(document);
        for field in ["/metadata/name", "/spec/group", "/spec/names/plural", "/spec/names/kind"] {
            let path = field.trim_start_matches('/').replace('/', ".");
            ensure!(!definition.text(field).is_empty(), "{path} is missing or no text");
        }
        let name = definition.name();
        ensure!(ObjectId::is_name(name), "metadata.name {name:?} is not an object name");
        ensure!(!definition.storage().is_empty(), "no version has storage: true in spec.versions");
        Ok(definition)
    }

    fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The whole document.
    pub(crate) fn document(&self) -> &Value {
        &self.0
    }

    /// Its name: `PLURAL.GROUP`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// Its kind in one of its versions.
    pub(crate) fn kind(&self, version: &str) -> Kind {
        let kind = GroupVersionKind::gvk(self.text("/spec/group"), version, self.text("/spec/names/kind"));
        let resource = ApiResource::from_gvk_with_plural(&kind, self.text("/spec/names/plural"));
        Kind::of(resource, self.text("/spec/scope") == "Namespaced")
    }

    fn versions(&self) -> impl Iterator<Item = &Value> {
        self.0["spec"]["versions"].as_array().into_iter().flatten()
    }

    /// A version, if the definition has it.
    pub(crate) fn version(&self, name: &str) -> Option<&Value> {
        self.versions().find(|version| version["name"] == name)
    }

    /// The schema of a version.
    pub(crate) fn schema(&self, version: &str) -> &Value {
        self.version(version).map_or(&Value::Null, |version| &version["schema"]["openAPIV3Schema"])
    }

    /// The version in which objects are stored from now on.
    pub(crate) fn storage(&self) -> &str {
        let storage = self.versions().find(|version| version["storage"] == true);
        storage.and_then(|version| version["name"].as_str()).unwrap_or_default()
    }

    /// The versions in which objects may be stored.
    pub(crate) fn stored(&self) -> Vec<&str> {
        let stored = self.0["status"]["storedVersions"].as_array();
        stored.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Whether objects can be read in a version.
    pub(crate) fn is_served(&self, version: &str) -> bool {
        self.version(version).is_some_and(|version| version["served"] == true)
    }

    /// Whether a webhook converts between versions, and not the server itself.
    pub(crate) fn is_converted_by_webhook(&self) -> bool {
        self.text("/spec/conversion/strategy") == "Webhook"
    }

    /// The same schemas under another group, for objects that are only tried. All of an object is checked at once: without
    /// subresources, the server also validates the status of a new object. It is cluster-wide, so that neither quotas nor
    /// terminating namespaces refuse what is tried, and appears in no category. Nothing reacts to it, as it has no labels or
    /// annotations of its model.
    pub(crate) fn scratch(&self, group: &str, until: &str) -> Self {
        let names = &self.0["spec"]["names"];
        let version = |version: &Value| {
            json!({
                "name": version["name"], "served": true, "storage": version["storage"], "schema": version["schema"],
            })
        };
        Self(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{}.{group}", self.text("/spec/names/plural")),
                "labels": {keys::SCRATCH: "true"}, "annotations": {keys::SCRATCH_UNTIL: until},
            },
            "spec": {
                "group": group, "scope": "Cluster",
                "names": {"plural": names["plural"], "singular": names["singular"], "kind": names["kind"]},
                "preserveUnknownFields": self.0["spec"]["preserveUnknownFields"].as_bool().unwrap_or(false),
                "versions": self.versions().map(version).collect::<Vec<_>>(),
            },
        }))
    }

    /// Asks the server, without any effect, whether it would take this definition in place of the installed one. Returns the
    /// reason if it would not.
    pub(crate) async fn refusal(&self, cluster: &Cluster, live: Option<&Self>) -> Result<Option<String>> {
        let mut replaced = live.map(|live| live.0.clone());
        if let Some(replaced) = &mut replaced {
            replaced["spec"] = self.0["spec"].clone();
        }
        let change = replaced.as_ref().map_or(Change::Create(&self.0), Change::Replace);
        let how = How { dry_run: true, ..How::STRICT };
        match cluster.at(&Kind::definitions(), None, self.name()).write::<Value>(change, how).await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => {
                Ok(Some(status.message.clone()))
            }
            Err(error) => Err(refused(cluster, self.name(), "update", error)),
        }
    }

    /// The error of a failed list of its objects, for a user.
    pub(crate) fn refused_list(&self, error: kube::Error) -> anyhow::Error {
        errors::refused((self.text("/spec/names/kind"), self.name()), "", None, "list", error)
    }

    /// What makes the server take another definition in place of this one although that lacks versions in which objects may be
    /// stored.
    #[must_use]
    pub fn way_to(&self, new: &Self) -> String {
        let migrate = format!("kubectl catena upgrade migrate {}", self.name());
        let is_in_both = |version: &str| new.version(version).is_some() && self.is_served(version);
        let (old, storage) = (self.storage(), new.storage());
        if is_in_both(old) {
            return format!("first migrate its objects: `{migrate}`");
        }
        let versions = self.versions().filter_map(|version| version["name"].as_str());
        let mut common = std::iter::once(storage).chain(versions);
        match common.find(|version| is_in_both(version)) {
            Some(version) => format!("first migrate its objects: `{migrate} --to {version}`"),
            None => format!(
                "first apply a definition that serves both {old} and {storage}, and migrate its objects: `{migrate} --to {storage}`"
            ),
        }
    }
}

/// The installed definition of a name.
pub async fn installed(cluster: &Cluster, name: &str) -> Result<Option<Definition>> {
    let found = cluster.at(&Kind::definitions(), None, name).read().await;
    Ok(found.map_err(|error| refused(cluster, name, "get", error))?.map(Definition))
}

/// The error of a failed request about a definition, for a user.
pub fn refused(cluster: &Cluster, name: &str, verb: &str, error: kube::Error) -> anyhow::Error {
    cluster.refused(&Kind::definitions(), name, verb, error)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A definition with a version that has these fields in its spec.
    pub fn definition(fields: &Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com", "labels": {"catena.dev/command": "true"}},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"]},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": {"type": "object", "properties": fields}}}},
                }],
            },
        })
    }

    #[test]
    fn a_scratch_definition_attracts_nobody_and_validates_the_status() {
        let Definition(scratch) =
            Definition::new(definition(&json!({}))).unwrap().scratch("zz.example.org", "then");
        assert_eq!(scratch["metadata"]["name"], "things.zz.example.org");
        assert_eq!(scratch["metadata"]["labels"], json!({keys::SCRATCH: "true"}));
        let version = &scratch["spec"]["versions"][0];
        assert!(version["subresources"].is_null() && version["served"] == true, "{scratch}");
        assert!(scratch["spec"]["names"]["shortNames"].is_null() && scratch["spec"]["scope"] == "Cluster");
    }

    #[test]
    fn the_way_to_a_definition_without_a_stored_version_is_a_command_that_changes_something() {
        let with = |versions: &[&str]| {
            let mut document = definition(&json!({}));
            let version = document["spec"]["versions"][0].clone();
            let named = |(index, name): (usize, &&str)| {
                let mut version = version.clone();
                version["name"] = (*name).into();
                version["storage"] = (index == 0).into();
                version
            };
            document["spec"]["versions"] = versions.iter().enumerate().map(named).collect();
            Definition::new(document).unwrap()
        };
        for (installed, new, options) in [
            // The new one is stored already, and only its objects are not.
            (&["v2", "v1"][..], &["v2"][..], ""),
            (&["v1", "v2"], &["v2"], " --to v2"),
            (&["v1", "v2"], &["v3", "v2"], " --to v2"),
            (&["v1"], &["v2"], " --to v2"),
        ] {
            let way = with(installed).way_to(&with(new));
            let command = format!("kubectl catena upgrade migrate things.example.com{options}");
            assert!(way.ends_with(&format!(": `{command}`")), "{installed:?} {new:?}: {way}");
        }
        assert!(with(&["v1"]).way_to(&with(&["v2"])).contains("serves both v1 and v2"));
    }

    #[test]
    fn a_document_that_is_no_definition_is_refused_with_the_field() {
        let refused = |change: &dyn Fn(&mut Value)| {
            let mut document = definition(&json!({}));
            change(&mut document);
            Definition::new(document).unwrap_err().to_string()
        };
        assert!(refused(&|d| d["apiVersion"] = "apiextensions.k8s.io/v1beta1".into()).contains("v1beta1"));
        assert!(refused(&|d| d["spec"]["group"] = Value::Null).contains("spec.group"));
        assert!(refused(&|d| d["spec"]["versions"] = json!([])).contains("storage: true"));
    }
}
