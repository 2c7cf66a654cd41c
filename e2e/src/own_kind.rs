use std::path::PathBuf;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::DynamicObject,
    discovery::ApiResource,
};
use serde_json::{Value, json};

use crate::{Cluster, Namespace, WAIT_TIMEOUT, eventually};

/// Concurrent creates.
const MAX_CONCURRENT_CREATES: usize = 32;

/// A kind of one test, whose definition goes from version to version. It is deleted with its namespace.
pub struct OwnKind {
    client: Client,
    definitions: Api<CustomResourceDefinition>,
    metadata: Value,
    /// Its namespace.
    pub namespace: String,
    group: String,
}

impl OwnKind {
    /// A kind that is not installed yet.
    #[must_use]
    pub fn new(cluster: &Cluster, namespace: &Namespace) -> Self {
        let group = format!("{}.example.com", namespace.name);
        let metadata = namespace.owns(&format!("gadgets.{group}"));
        let (client, name) = (cluster.client.clone(), namespace.name.clone());
        Self { client, definitions: cluster.all(), metadata, namespace: name, group }
    }

    /// The name of its definition.
    #[must_use]
    pub fn name(&self) -> String {
        format!("gadgets.{}", self.group)
    }

    /// Its definition with these versions.
    #[must_use]
    pub fn definition(&self, versions: &[Value]) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": self.metadata,
            "spec": {
                "group": self.group, "scope": "Namespaced",
                "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
                "versions": versions,
            },
        })
    }

    /// A served version whose spec has these fields.
    #[must_use]
    pub fn version(name: &str, is_stored: bool, fields: &Value) -> Value {
        let spec = json!({"type": "object", "properties": fields});
        let status = json!({"type": "object", "properties": {"seen": {"type": "string"}}});
        json!({
            "name": name, "served": true, "storage": is_stored, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        })
    }

    /// Applies a definition, and waits until its storage version is served.
    pub async fn install(&self, definition: &Value) -> Result<()> {
        let params = PatchParams::apply("e2e").force();
        self.definitions.patch(&self.name(), &params, &Patch::Apply(definition)).await?;
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        for version in versions.filter(|version| version["served"] == true) {
            let api = self.api(version["name"].as_str().context("a version has no name")?);
            eventually("the version is served", WAIT_TIMEOUT, async || {
                api.list(&ListParams::default().limit(1)).await.map(|_| ()).map_err(|error| error.to_string())
            })
            .await;
        }
        Ok(())
    }

    /// The versions in which its objects may be stored.
    pub async fn stored_versions(&self) -> Result<Vec<String>> {
        let definition = self.definitions.get(&self.name()).await?;
        Ok(definition.status.and_then(|status| status.stored_versions).unwrap_or_default())
    }

    /// Its objects in a version.
    #[must_use]
    pub fn api(&self, version: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: self.group.clone(),
            version: version.to_owned(),
            api_version: format!("{}/{version}", self.group),
            kind: "Gadget".to_owned(),
            plural: "gadgets".to_owned(),
        };
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Creates objects `gadget-0` and so on, with these specs.
    pub async fn create(&self, version: &str, specs: Vec<Value>) -> Result<()> {
        let api = self.api(version);
        let create = stream::iter(specs.into_iter().enumerate()).map(async |(number, spec)| {
            let object = json!({
                "apiVersion": format!("{}/{version}", self.group), "kind": "Gadget",
                "metadata": {"name": format!("gadget-{number}")}, "spec": spec,
            });
            let object: DynamicObject = serde_json::from_value(object)?;
            api.create(&PostParams::default(), &object).await?;
            anyhow::Ok(())
        });
        create.buffer_unordered(MAX_CONCURRENT_CREATES).try_collect().await
    }

    /// All objects, as read in a version: name, resourceVersion, spec and status.
    pub async fn objects(&self, version: &str) -> Result<Vec<(String, String, Value)>> {
        let listed = self.api(version).list(&ListParams::default()).await?;
        let mut objects: Vec<_> = listed
            .into_iter()
            .map(|object| (object.name_any(), object.resource_version().unwrap_or_default(), object.data))
            .collect();
        objects.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(objects)
    }

    /// Writes a definition to a file for the plugin.
    pub fn file(&self, name: &str, definition: &Value) -> Result<String> {
        let folder: PathBuf = std::env::temp_dir().join(format!("catena-{}", self.namespace));
        std::fs::create_dir_all(&folder)?;
        let file = folder.join(name);
        std::fs::write(&file, definition.to_string())?;
        Ok(file.display().to_string())
    }
}

impl Drop for OwnKind {
    fn drop(&mut self) {
        std::fs::remove_dir_all(std::env::temp_dir().join(format!("catena-{}", self.namespace))).ok();
    }
}
