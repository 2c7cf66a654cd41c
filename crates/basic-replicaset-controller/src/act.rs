//! Action → writes. The only writer.

use std::sync::Arc;

use catena_api::{BasicReplicaSet, keys};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{
    Cache, Next, Templates, WriteError, Writer,
    owner::{controller_reference, is_controlled_by},
    short_digest, slow_start,
};
use serde_json::{Value, json};

use crate::{
    decide::Action,
    error::Error,
    observe::{Observed, subject},
    pod::PodRow,
};

/// The pods, as they are known and written.
pub struct Pods {
    client: Client,
    writer: Writer,
    cache: Arc<Cache<PodRow>>,
    resource: ApiResource,
}

impl Pods {
    pub fn new(client: Client, writer: Writer, cache: Arc<Cache<PodRow>>) -> Self {
        Self { client, writer, cache, resource: ApiResource::erase::<Pod>(&()) }
    }

    /// The pods that are known.
    pub fn cache(&self) -> &Cache<PodRow> {
        &self.cache
    }

    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Takes a step.
    pub async fn act(
        &self,
        templates: &Templates,
        observed: &Observed,
        action: Action,
    ) -> Result<Next, Error> {
        let set = &*observed.set;
        match action {
            Action::Create { revision, slots } => {
                slow_start(slots, |slot| self.create(templates, set, &revision, slot)).await?;
                Ok(Next::Written)
            }
            Action::Delete(pods) => {
                slow_start(pods, |pod| self.delete(set, pod)).await?;
                Ok(Next::Written)
            }
            Action::Adopt(pods) => {
                self.still_there(set).await?;
                slow_start(pods, |pod| self.adopt(set, pod)).await?;
                Ok(Next::Written)
            }
            Action::Refuse(error) => Err(error.into()),
            Action::WriteStatus(status) => {
                self.writer.apply_status(set, &status).await?;
                Ok(Next::Written)
            }
            Action::Wait(time) => Ok(Next::Wait(time)),
            Action::Settle => Ok(Next::Settled),
        }
    }

    async fn create(
        &self,
        templates: &Templates,
        set: &BasicReplicaSet,
        revision: &str,
        slot: u32,
    ) -> Result<(), Error> {
        let uid = uid(set);
        let slot = slot.to_string();
        // A create that is repeated, after a crash or with a stale cache, meets its own pod.
        let suffix = short_digest(&[uid, revision, &slot]);
        let mut pod = templates.render(&set.spec.template, &subject(set, &suffix), "v1", "Pod")?.object;
        let metadata = &mut pod["metadata"];
        metadata["labels"][keys::REPLICA_SET_UID] = uid.into();
        metadata["annotations"][keys::HASH] = revision.into();
        metadata["annotations"][keys::SLOT] = slot.into();
        metadata["ownerReferences"] = json!([controller_reference(set)]);
        match self.writer.create(uid, self.cache.seen(), &self.resource, &pod).await {
            Err(WriteError::AlreadyExists { name, .. }) => self.recognise(set, &name).await,
            created => Ok(created?),
        }
    }

    /// A pod of the name is there: ours from an earlier try, or somebody else's.
    async fn recognise(&self, set: &BasicReplicaSet, name: &str) -> Result<(), Error> {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let found = pods.get_metadata_opt(name).await.map_err(|source| Error::look_up(name, source))?;
        let Some(found) = found.map(|pod| pod.metadata) else { return Ok(()) };
        if !is_controlled_by(&found, uid(set)) {
            return Err(Error::NameTaken { name: name.to_owned() });
        }
        if found.labels.as_ref().is_some_and(|labels| labels.contains_key(keys::REPLICA_SET_UID)) {
            return Ok(());
        }
        // Without the label the watch does not show it.
        let metadata = json!({
            "name": name, "namespace": namespace, "uid": found.uid, "labels": {keys::REPLICA_SET_UID: uid(set)},
        });
        self.patch(set, &metadata).await
    }

    async fn adopt(&self, set: &BasicReplicaSet, pod: Arc<PodRow>) -> Result<(), Error> {
        let metadata = json!({
            "name": pod.name, "namespace": pod.namespace, "uid": pod.uid,
            "labels": {keys::REPLICA_SET_UID: uid(set)},
            "ownerReferences": [controller_reference(set)],
        });
        self.patch(set, &metadata).await
    }

    /// A set that is being deleted may leave its pods behind on purpose; taking them back would get them
    /// deleted with it. So the set is looked up live before, as kube-controller-manager does.
    async fn still_there(&self, set: &BasicReplicaSet) -> Result<(), Error> {
        let (namespace, name) =
            (set.metadata.namespace.as_deref(), set.metadata.name.as_deref().unwrap_or_default());
        let sets: Api<BasicReplicaSet> = Api::namespaced(self.client.clone(), namespace.unwrap_or_default());
        let found = sets.get_metadata_opt(name).await.map_err(|source| Error::look_up(name, source))?;
        let alive = found.is_some_and(|found| {
            found.metadata.uid == set.metadata.uid && found.metadata.deletion_timestamp.is_none()
        });
        if alive { Ok(()) } else { Err(WriteError::gone("BasicReplicaSet", name).into()) }
    }

    /// Adds to the pod's labels and owners; those of others stay.
    async fn patch(&self, set: &BasicReplicaSet, metadata: &Value) -> Result<(), Error> {
        let patch = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
        self.writer.apply(uid(set), self.cache.seen(), &self.resource, &patch).await?;
        Ok(())
    }

    async fn delete(&self, set: &BasicReplicaSet, pod: Arc<PodRow>) -> Result<(), Error> {
        let seen = self.cache.seen();
        Ok(self.writer.delete(uid(set), seen, &self.resource, &pod.namespace, &pod.name, &pod.uid).await?)
    }
}

fn uid(set: &BasicReplicaSet) -> &str {
    set.metadata.uid.as_deref().unwrap_or_default()
}
