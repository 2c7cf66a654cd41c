//! The namespace of the trials, and the objects in it. The only writer.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::DynamicObject,
};
use operator_kit::watch::Unmanaged;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::replica::Replica;
use crate::{connection::Cluster, kinds::Kind, pages};

/// The label of the namespaces of trials.
const OF_A_CHECK: &str = "catena.dev/contract-check";
/// The field manager of the parent's part.
const PARENT: &str = "kubectl-catena";
/// The field manager of somebody else's part.
const SOMEBODY_ELSE: &str = "kubectl-catena-somebody-else";
/// The key of somebody else's label and annotation.
const FOREIGN: &str = "catena.dev/somebody-else";
/// Time for the namespace to go; what is still there then has a finalizer of another controller.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two looks at a namespace that goes.
const REMOVAL_INTERVAL: Duration = Duration::from_millis(250);

/// A namespace of its own for the trials.
pub struct Stage {
    cluster: Cluster,
    kind: Kind,
    pods: Kind,
    uid: String,
}

impl Stage {
    /// Creates the namespace.
    pub async fn set_up(mut cluster: Cluster, kind: Kind) -> Result<Self> {
        if !kind.is_namespaced {
            bail!(
                "{} has no namespace, so that its objects cannot be tried in one of their own",
                kind.resource.kind
            );
        }
        let now = Timestamp::now().as_millisecond();
        let object: Namespace = serde_json::from_value(json!({
            "metadata": {"name": format!("contract-check-{now}-{}", std::process::id()), "labels": {OF_A_CHECK: "replicas"}},
        }))?;
        let namespaces = Api::<Namespace>::all(cluster.client.clone());
        let created = namespaces.create(&PostParams::default(), &object).await;
        let created =
            created.context("the namespace of the trials cannot be created; you need that right")?;
        cluster.namespace = created.name_any();
        let pods = cluster.kinds.find("pods")?.clone();
        Ok(Self { uid: created.uid().unwrap_or_default(), cluster, kind, pods })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.cluster.namespace
    }

    /// The kind that is tried.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Its children, for a watch.
    pub fn children(&self) -> Api<Unmanaged<DynamicObject>> {
        self.cluster.api(&self.kind, Some(self.name()))
    }

    /// Its pods, for a watch.
    pub fn pods(&self) -> Api<Unmanaged<DynamicObject>> {
        self.cluster.api(&self.pods, Some(self.name()))
    }

    /// Its replicas now.
    pub async fn replicas(&self) -> Result<Vec<Replica>> {
        let api: Api<DynamicObject> = self.cluster.api(&self.pods, Some(self.name()));
        let listed = pages::all(&api, ListParams::default()).await;
        let pods = listed.map_err(|error| self.cluster.refused(&self.pods, "", "list", error))?;
        Ok(pods.iter().map(Replica::of).collect())
    }

    /// Applies a child as a parent does, and returns its generation.
    pub async fn apply(&self, child: &Value) -> Result<i64> {
        let name = child["metadata"]["name"].as_str().unwrap_or_default();
        let params = PatchParams {
            field_validation: Some(kube::api::ValidationDirective::Strict),
            ..PatchParams::apply(PARENT).force()
        };
        let applied = self.api().patch(name, &params, &Patch::Apply(child)).await;
        let applied = applied.map_err(|error| self.cluster.refused(&self.kind, name, "apply", error))?;
        Ok(applied.metadata.generation.unwrap_or_default())
    }

    /// Sets a label and an annotation of somebody else on a child.
    pub async fn mark(&self, name: &str) -> Result<()> {
        let marks = json!({"metadata": {"labels": {FOREIGN: "stays"}, "annotations": {FOREIGN: "stays"}}});
        let params = PatchParams { field_manager: Some(SOMEBODY_ELSE.to_owned()), ..PatchParams::default() };
        let marked = self.api().patch(name, &params, &Patch::Merge(marks)).await;
        marked.map_err(|error| self.cluster.refused(&self.kind, name, "patch", error))?;
        Ok(())
    }

    /// The marks that a child has lost.
    pub async fn lost_marks(&self, name: &str) -> Result<Vec<&'static str>> {
        let child = self.find(name).await?.with_context(|| format!("{name} is gone"))?;
        let has = |map: &std::collections::BTreeMap<String, String>| map.contains_key(FOREIGN);
        let marks = [("label", has(child.labels())), ("annotation", has(child.annotations()))];
        Ok(marks.into_iter().filter(|(_, is_there)| !is_there).map(|(what, _)| what).collect())
    }

    /// A child, if it is there.
    pub async fn find(&self, name: &str) -> Result<Option<DynamicObject>> {
        let found = self.cluster.find(&self.kind, Some(self.name()), name).await;
        found.map_err(|error| self.cluster.refused(&self.kind, name, "get", error))
    }

    /// Deletes a child, in the background.
    pub async fn delete(&self, name: &str) -> Result<()> {
        match self.api().delete(name, &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(self.cluster.refused(&self.kind, name, "delete", error)),
            Ok(_) => Ok(()),
        }
    }

    /// Deletes the namespace, and waits until it is gone. Finalizers of our children do not keep it.
    pub async fn remove(&self) -> Result<()> {
        let namespaces = Api::<Namespace>::all(self.cluster.client.clone());
        namespaces.delete(self.name(), &DeleteParams::background()).await?;
        let deadline = Instant::now() + REMOVAL_TIMEOUT;
        loop {
            self.release().await.ok();
            let found = namespaces.get_opt(self.name()).await?;
            if found.is_none_or(|found| found.uid().as_deref() != Some(&self.uid)) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("it is still there: `kubectl describe namespace {}` says why", self.name());
            }
            sleep(REMOVAL_INTERVAL).await;
        }
    }

    /// Removes the finalizers of children that are being deleted.
    async fn release(&self) -> Result<()> {
        let children = self.api().list(&ListParams::default()).await?;
        for child in children.iter().filter(|child| !child.finalizers().is_empty()) {
            let none = json!({"metadata": {"uid": child.uid(), "finalizers": null}});
            self.api().patch(&child.name_any(), &PatchParams::default(), &Patch::Merge(none)).await?;
        }
        Ok(())
    }

    fn api(&self) -> Api<DynamicObject> {
        self.cluster.api(&self.kind, Some(self.name()))
    }
}
