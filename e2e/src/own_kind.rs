use std::{ops::Deref, path::PathBuf};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::DynamicObject,
    discovery::ApiResource,
};
use serde_json::{Value, json};

use crate::{
    Cluster, Namespace, WAIT_TIMEOUT, cleanup::clean_up, eventually, eventually::until_gone, is_protected,
    yaml,
};

/// The version of a plain kind.
const PLAIN: &str = "v1";

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

    /// Its API group, which no other test has.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
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
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource(&self.group, version))
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

    /// One whose only version takes no fields, for a controller of the test: the cluster's controllers do not know it.
    pub async fn plain(cluster: &Cluster, namespace: &Namespace) -> Result<Self> {
        let kind = Self::new(cluster, namespace);
        kind.install(&kind.definition(&[Self::version(PLAIN, true, &json!({}))])).await?;
        Ok(kind)
    }

    /// The plain kind as an entry of settings describes it.
    #[must_use]
    pub fn described(&self) -> Value {
        json!({"apiVersion": format!("{}/{PLAIN}", self.group), "kind": "Gadget", "resource": "gadgets"})
    }

    /// Creates an object of the plain kind, with labels.
    pub async fn add(&self, name: &str, labels: &Value) -> Result<DynamicObject> {
        let mut object = self.described();
        object["metadata"] = json!({"name": name, "labels": labels});
        Ok(self.api(PLAIN).create(&PostParams::default(), &serde_json::from_value(object)?).await?)
    }

    /// An object of the plain kind.
    pub async fn get(&self, name: &str) -> Result<DynamicObject> {
        Ok(self.api(PLAIN).get(name).await?)
    }

    /// Deletes an object of the plain kind in the background.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.api(PLAIN).delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Waits until `is` is true for an object of the plain kind.
    #[track_caller]
    pub fn until(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&DynamicObject) -> bool,
    ) -> impl Future<Output = DynamicObject> {
        let api = self.api(PLAIN);
        eventually(what, WAIT_TIMEOUT, async move || {
            let object = api.get(name).await.map_err(|error| error.to_string())?;
            if is(&object) { Ok(object) } else { Err(yaml(&object)) }
        })
    }

    /// Waits until an object of the plain kind is gone.
    #[track_caller]
    pub fn until_gone(&self, name: &str) -> impl Future<Output = ()> {
        until_gone("it is gone", WAIT_TIMEOUT, self.api(PLAIN), name)
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

/// When dropped, removes the finalizer of backup-controller from each object of a plain kind. Drop it after the test's own
/// controller, which would add the finalizer again.
pub struct FinalizerCleanup(OwnKind);

impl FinalizerCleanup {
    /// A cleanup of this kind.
    #[must_use]
    pub const fn of(kind: OwnKind) -> Self {
        Self(kind)
    }
}

impl Deref for FinalizerCleanup {
    type Target = OwnKind;

    fn deref(&self) -> &OwnKind {
        &self.0
    }
}

impl Drop for FinalizerCleanup {
    fn drop(&mut self) {
        let (group, namespace) = (self.group.clone(), self.namespace.clone());
        clean_up("letting go what is still protected", async move |client| {
            let objects: Api<DynamicObject> =
                Api::namespaced_with(client, &namespace, &resource(&group, PLAIN));
            let unprotected = json!({"metadata": {"finalizers": null}});
            for object in objects.list(&ListParams::default()).await?.into_iter().filter(is_protected) {
                let patch = Patch::Merge(&unprotected);
                match objects.patch_metadata(&object.name_any(), &PatchParams::default(), &patch).await {
                    Err(kube::Error::Api(status)) if status.is_not_found() => {}
                    patched => drop(patched?),
                }
            }
            Ok(())
        });
    }
}

fn resource(group: &str, version: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: "Gadget".to_owned(),
        plural: "gadgets".to_owned(),
    }
}
