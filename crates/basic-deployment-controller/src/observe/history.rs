use std::{collections::HashMap, sync::Arc};

use basic_deployment_controller::revision::{Revision, find};
use catena_api::keys;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{Client, discovery::ApiResource};
use operator_kit::run::Queue;
use operator_watch::{ApiError, Cache, Live, PrunedObject, Watch, Watches, WriteTarget};
use parking_lot::Mutex;
use serde_json::Value;

/// The watched revisions of all `BasicDeployments`; the content of a revision is read when it is needed.
pub struct History {
    client: Client,
    resource: ApiResource,
    cache: Arc<Cache<Revision>>,
    /// The revision that was read last and its rendering, which never changes, by the uid of the `BasicDeployment`.
    read: Mutex<HashMap<String, (String, Value)>>,
}

impl History {
    pub fn new(client: Client, watches: &Watches, queue: Queue) -> Self {
        let resource = ApiResource::erase::<ControllerRevision>(&());
        let watch = Watch::<PrunedObject>::all(&client, &resource).labelled(keys::DEPLOYMENT_UID);
        let cache = watches.cache(watch, Revision::of, move |revision: &Revision| {
            if let Some(owner) = &revision.owner {
                queue.notify(&revision.namespace, &owner.name);
            }
        });
        Self { client, resource, cache, read: Mutex::default() }
    }

    /// The reason why the history is unreliable, if it is.
    pub fn problem(&self) -> Option<String> {
        self.cache.watch().problem()
    }

    /// The revisions of a `BasicDeployment`, the oldest first.
    pub fn of(&self, namespace: &str, name: &str, uid: &str) -> Vec<Arc<Revision>> {
        let mut revisions = self.cache.by_index(namespace, uid);
        // An orphan is in the group of a name, which can be any text.
        revisions.retain(|revision| revision.owner.is_some() && revision.is_genuine(name, uid));
        revisions.sort_by(|a, b| (a.number, &a.uid).cmp(&(b.number, &b.uid)));
        revisions
    }

    /// The revisions that a former `BasicDeployment` of this name has left: the last one of each rendering that has no other.
    pub fn left(&self, namespace: &str, name: &str, known: &[Arc<Revision>]) -> Vec<Arc<Revision>> {
        let mut left = self.cache.by_index(namespace, name);
        left.retain(|revision| revision.is_left_by(name) && find(known, &revision.hash).is_none());
        left.sort_by(|a, b| (&a.hash, b.number).cmp(&(&b.hash, a.number)));
        left.dedup_by(|earlier, last| earlier.hash == last.hash);
        left
    }

    /// The rendering in a revision; `None` if the revision was deleted meanwhile, or somebody changed its content.
    pub async fn rendering(&self, whose: &str, revision: &Revision) -> Result<Option<Value>, ApiError> {
        if let Some((_, rendering)) = self.read.lock().get(whose).filter(|(read, _)| *read == revision.uid) {
            return Ok(Some(rendering.clone()));
        }
        let Revision { namespace, name, .. } = revision;
        let found = Live::object(&self.client, &self.resource, namespace, name).await?;
        let Some(found) = found.filter(|found| found.metadata.uid.as_deref() == Some(&revision.uid)) else {
            return Ok(None);
        };
        let Some(rendering) = Revision::rendering(found) else { return Ok(None) };
        self.read.lock().insert(whose.to_owned(), (revision.uid.clone(), rendering.clone()));
        Ok(Some(rendering))
    }

    /// The kind and watch of revisions.
    pub fn place(&self) -> WriteTarget {
        WriteTarget::new(self.resource.clone(), self.cache.watch().seen_version())
    }

    /// Forgets the rendering that was read for a `BasicDeployment`.
    pub fn forget(&self, uid: &str) {
        self.read.lock().remove(uid);
    }
}
