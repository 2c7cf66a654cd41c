//! An operator that issues keys as cert-manager does, and carries out commands as Volcano does: whatever its status does not say
//! is done again, also after a restoration. It runs inside the test.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use k8s_openapi::{
    api::core::v1::Secret, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::{DynamicObject, GroupVersionKind},
    discovery::ApiResource,
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{interval, timeout},
};

use crate::{Cluster, Namespace, WAIT_TIMEOUT, eventually, open_kind};

/// Short, so that it sees what a restoration has created and what not yet.
const PASS_INTERVAL: Duration = Duration::from_millis(20);

/// An operator with kinds of its own.
#[derive(Clone)]
pub struct IssuingOperator {
    /// The group of its kinds.
    pub group: String,
    client: Client,
    namespace: String,
    done: Arc<Mutex<Vec<String>>>,
}

impl IssuingOperator {
    /// Installs its kinds, which are deleted with the namespace: a Certificate names its Issuer and its Secret, and is issued by a
    /// Request, which it controls; an Abort is a command.
    pub async fn install(cluster: &Cluster, namespace: &Namespace) -> Result<Self> {
        let group = format!("{}.example.com", namespace.name);
        let definitions = cluster.all::<CustomResourceDefinition>();
        for kind in ["Certificate", "Issuer", "Request", "Abort"] {
            let mut definition = open_kind(&group, kind, &["v1"]);
            let name =
                definition["metadata"]["name"].as_str().context("a definition has no name")?.to_owned();
            definition["metadata"] = namespace.owns(&name);
            definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
            let definition = serde_json::from_value(definition)?;
            definitions.create(&PostParams::default(), &definition).await?;
            let established = await_condition(definitions.clone(), &name, is_crd_established());
            timeout(WAIT_TIMEOUT, established).await??;
        }
        let (client, namespace) = (cluster.client.clone(), namespace.name.clone());
        Ok(Self { group, client, namespace, done: Arc::default() })
    }

    /// Works until the result is dropped.
    #[must_use]
    pub fn start(&self) -> JoinSet<()> {
        let operator = self.clone();
        JoinSet::from_iter([async move {
            let mut turns = interval(PASS_INTERVAL);
            loop {
                turns.tick().await;
                // What is refused is repeated by the next pass.
                operator.pass().await.ok();
            }
        }])
    }

    /// What it has done so far.
    #[must_use]
    pub fn done(&self) -> Vec<String> {
        self.done.lock().clone()
    }

    /// The objects of one of its kinds.
    #[must_use]
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(&self.group, "v1", kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind)
    }

    /// Creates an object of one of its kinds.
    pub async fn create(&self, kind: &str, name: &str, spec: &Value) -> Result<DynamicObject> {
        self.create_below(kind, name, spec, &json!([])).await
    }

    /// Waits until it has seen all Certificates.
    pub async fn until_all_are_issued(&self) {
        eventually("all Certificates are issued", WAIT_TIMEOUT, async || {
            let certificates = self.api("Certificate").list(&ListParams::default()).await;
            let certificates = certificates.map_err(|error| error.to_string())?.items;
            let are_done = !certificates.is_empty() && certificates.iter().all(is_done);
            if are_done { Ok(()) } else { Err(format!("{certificates:?}")) }
        })
        .await;
    }

    async fn create_below(
        &self,
        kind: &str,
        name: &str,
        spec: &Value,
        owners: &Value,
    ) -> Result<DynamicObject> {
        let object = json!({
            "apiVersion": format!("{}/v1", self.group), "kind": kind,
            "metadata": {"name": name, "ownerReferences": owners}, "spec": spec,
        });
        let object = serde_json::from_value(object)?;
        Ok(self.api(kind).create(&PostParams::default(), &object).await?)
    }

    async fn pass(&self) -> Result<()> {
        for kind in ["Certificate", "Request", "Abort"] {
            for object in self.api(kind).list(&ListParams::default()).await? {
                if is_done(&object) || object.metadata.deletion_timestamp.is_some() {
                    continue;
                }
                let name = object.name_any();
                if kind == "Certificate" {
                    self.issue(&object, &name).await?;
                } else {
                    self.done.lock().push(format!("{kind} {name} is carried out"));
                }
                let status = Patch::Merge(json!({"status": {"done": true}}));
                self.api(kind).patch_status(&name, &PatchParams::default(), &status).await?;
            }
        }
        Ok(())
    }

    /// Makes a new key, unless there is one.
    async fn issue(&self, certificate: &DynamicObject, name: &str) -> Result<()> {
        let text =
            |pointer: &str| certificate.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if self.api("Issuer").get_opt(text("/spec/issuerRef/name")).await?.is_none() {
            self.done.lock().push(format!("{name} has no Issuer"));
        }
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        if secrets.get_opt(text("/spec/secretName")).await?.is_some() {
            return Ok(());
        }
        self.done.lock().push(format!("{name} is issued"));
        let uid = certificate.uid().unwrap_or_default();
        let secret = json!({"metadata": {"name": text("/spec/secretName")}, "stringData": {"key": uid}});
        let secret = serde_json::from_value(secret)?;
        secrets.create(&PostParams::default(), &secret).await?;
        let owner = json!([{
            "apiVersion": format!("{}/v1", self.group), "kind": "Certificate", "name": name, "uid": uid,
            "controller": true,
        }]);
        self.create_below("Request", &format!("{name}-{uid}"), &json!({"certificate": name}), &owner).await?;
        Ok(())
    }
}

fn is_done(object: &DynamicObject) -> bool {
    object.data["status"]["done"] == true
}
