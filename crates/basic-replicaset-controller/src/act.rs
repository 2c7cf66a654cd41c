//! Action → writes. The only writer.

use std::{collections::BTreeMap, sync::Arc};

use catena_api::{BasicReplicaSet, keys};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::{
    render::Templates,
    report::Part,
    run::Next,
    watch::{Cache, ReadError, TrimmedObject, live},
    write::{
        Batch, WriteError, Writer,
        owner::{controller_reference, is_controlled_by, still_there},
        slow_start,
    },
};
use serde_json::{Value, json};

use crate::{
    adoption::Origin,
    decide::Action,
    error::{Error, Failed},
    observe::{Observed, subject},
    pod::PodRow,
    status::CONDITIONS,
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

    /// A pod as it is now; `None` when it went, or its name is another one's.
    pub async fn live(&self, pod: &PodRow) -> Result<Option<TrimmedObject>, ReadError> {
        let pods: Api<TrimmedObject> =
            Api::namespaced_with(self.client.clone(), &pod.namespace, &self.resource);
        let found = pods.get_opt(&pod.name).await.map_err(|error| ReadError::of(&error, "Pod", &pod.name))?;
        Ok(found.filter(|found| found.metadata.uid.as_deref() == Some(&pod.uid)))
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
                let create = |slot| self.create(templates, set, &revision, slot);
                let batch = slow_start(slots, create, Error::is_for_its_name).await;
                written(batch, u32::to_string, Error::is_for_its_name)
            }
            Action::Delete(pods) => {
                let batch = slow_start(pods, |pod| self.delete(set, pod), Error::is_for_its_pod).await;
                written(batch, |pod| pod.uid.to_string(), Error::is_for_its_pod)
            }
            Action::Adopt(pods) => {
                let name = set.metadata.name.as_deref().unwrap_or_default();
                let is_there = still_there(self.client.clone(), set).await;
                if !is_there.map_err(|error| ReadError::of(&error, "BasicReplicaSet", name))? {
                    return Err(WriteError::gone("BasicReplicaSet", name).into());
                }
                let batch = slow_start(pods, |pod| self.adopt(set, pod), Error::is_for_its_pod).await;
                written(batch, |pod| pod.uid.to_string(), Error::is_for_its_pod)
            }
            Action::Refuse(error) => Err(error.into()),
            Action::WriteStatus(status) => {
                self.writer.write_status(set, &status, &CONDITIONS).await?;
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
        let suffix = Origin { set: uid, revision, slot: &slot }.suffix();
        let make = || -> Result<Value, Error> {
            // Whether names differ by the suffix was asked when the revision was found.
            let mut pod = templates.render(&set.spec.template, &subject(set, &suffix), "v1", "Pod")?.object;
            let metadata = &mut pod["metadata"];
            metadata["labels"][keys::REPLICA_SET_UID] = uid.into();
            metadata["annotations"][keys::HASH] = revision.into();
            metadata["annotations"][keys::SLOT] = slot.as_str().into();
            metadata["ownerReferences"] = json!([controller_reference(set)]);
            Ok(pod)
        };
        match self.writer.create_made(uid, self.cache.seen(), &self.resource, make).await {
            Err(Error::Write(WriteError::AlreadyExists { name, .. })) => {
                self.recognise(set, &name, revision, &slot).await
            }
            created => created,
        }
    }

    /// A pod of the name is there: ours from an earlier try, or somebody else's.
    async fn recognise(
        &self,
        set: &BasicReplicaSet,
        name: &str,
        revision: &str,
        slot: &str,
    ) -> Result<(), Error> {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let found = live::metadata_opt(&self.client, &self.resource, namespace, name).await;
        let Some(found) = found.map_err(|error| ReadError::of(&error, "Pod", name))? else {
            return Err(WriteError::gone("Pod", name).into());
        };
        let has = |map: &Option<BTreeMap<String, String>>, key: &str, value: &str| {
            map.as_ref().and_then(|map| map.get(key)).is_some_and(|found| found == value)
        };
        if !is_controlled_by(&found, uid(set)) || !has(&found.annotations, keys::HASH, revision) {
            return Err(Error::NameTaken { name: name.to_owned() });
        }
        if has(&found.labels, keys::REPLICA_SET_UID, uid(set)) && has(&found.annotations, keys::SLOT, slot) {
            return Ok(());
        }
        // Without the label the watch does not show it; without its place it is not known which one is filled.
        let metadata = json!({
            "name": name, "namespace": namespace, "uid": found.uid,
            "labels": {keys::REPLICA_SET_UID: uid(set)},
            "annotations": {keys::SLOT: slot},
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

    /// Adds to the pod's labels and owners; those of others stay.
    async fn patch(&self, set: &BasicReplicaSet, metadata: &Value) -> Result<(), Error> {
        let patch = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
        self.writer.apply(uid(set), self.cache.seen(), &self.resource, &patch).await?;
        Ok(())
    }

    async fn delete(&self, set: &BasicReplicaSet, pod: Arc<PodRow>) -> Result<(), Error> {
        let PodRow { namespace, name, uid: which, .. } = &*pod;
        let deleted =
            self.writer.delete(uid(set), self.cache.seen(), &self.resource, namespace, name, which).await;
        deleted.map_err(|error| match error {
            WriteError::Forbidden { message, .. }
            | WriteError::Invalid { message, .. }
            // A webhook that does not answer.
            | WriteError::Unknown { code: 500, message, .. } => Error::DeleteRefused { name: name.to_string(), message },
            error => error.into(),
        })
    }
}

/// What follows from a batch: what failed for a reason of its own holds up nothing but itself.
fn written<T>(
    batch: Batch<T, Error>,
    item: impl Fn(&T) -> String,
    is_its_own: impl Fn(&Error) -> bool,
) -> Result<Next, Error> {
    let part = |(which, error): &(T, Error)| {
        if is_its_own(error) { Part::item(item(which), error) } else { Part::whole(error) }
    };
    let parts = batch.failed.iter().map(part).collect();
    let has_progressed = batch.done > 0;
    match batch.failed.into_iter().next() {
        None => Ok(Next::Written),
        Some((_, first)) => Err(Error::Some(Box::new(Failed { first, parts, has_progressed }))),
    }
}

fn uid(set: &BasicReplicaSet) -> &str {
    set.metadata.uid.as_deref().unwrap_or_default()
}
