//! A revision of a `BasicDeployment`: a rendering that its child is on, or was.

use std::sync::Arc;

use catena_api::{keys, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use operator_kit::write::Ownership;
use operator_watch::{Failure, ObjectId, PrunedObject, Row};
pub use replica_contract::revision_name as name;
use serde_json::Value;

/// A `ControllerRevision` in the cache, without the rendering, which is read when it is needed.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The `BasicDeployment` that it belongs to.
    pub owner: Option<OwnerReference>,
    /// The uid of the former `BasicDeployment` that it was stored for, if it was adopted, or if nobody controls it.
    pub made_for: Option<String>,
    /// Its number; the highest is the wanted one.
    pub number: i64,
    /// The hash of the rendering.
    pub hash: String,
    /// API version and kind of the child.
    pub kind: (String, String),
    /// The name of the child.
    pub child: String,
    /// When it got its number.
    pub numbered_at: Option<Time>,
    /// Whether it is being deleted, and held by somebody's finalizer.
    pub is_deleting: bool,
}

/// The revision with a hash.
#[must_use]
pub fn find<'r>(revisions: &'r [Arc<Revision>], hash: &str) -> Option<&'r Arc<Revision>> {
    revisions.iter().find(|revision| revision.hash == hash)
}

/// The refusal to change a child that was rolled back to a revision that no longer exists.
#[must_use]
pub fn gone(hash: &str) -> Failure {
    let message = format!(
        "the child was rolled back to a revision (hash {hash}) whose ControllerRevision was deleted; it is not changed until the spec or the template gives another rendering"
    );
    Failure::stalled(reason::REVISION_GONE, message)
}

impl Row for Revision {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: &self.namespace, name: &self.name, uid: &self.uid }
    }

    /// The uid of its owner. An orphan is found by the name of the `BasicDeployment`, which its own begins with.
    fn index_key(&self) -> Option<&str> {
        match &self.owner {
            Some(owner) => Some(owner.uid.as_str()),
            None => self.name.rsplit_once('-').map(|(deployment, _)| deployment),
        }
    }
}

impl Revision {
    /// Prunes a `ControllerRevision`.
    #[must_use]
    pub fn of(object: PrunedObject) -> Self {
        let PrunedObject { metadata, data } = object;
        let text = |field: &str| data["data"][field].as_str().unwrap_or_default().to_owned();
        let owner = Ownership::controller_of(&metadata).cloned();
        let label = metadata.labels.as_ref().filter(|_| owner.is_none());
        let label = label.and_then(|labels| labels.get(keys::DEPLOYMENT_UID).cloned());
        Self {
            made_for: annotation(&metadata, keys::MADE_FOR).or(label),
            owner,
            number: data["revision"].as_i64().unwrap_or_default(),
            hash: annotation(&metadata, keys::HASH).unwrap_or_default(),
            kind: (text("apiVersion"), text("kind")),
            child: data["data"]["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            numbered_at: annotation(&metadata, keys::NUMBERED_AT)
                .and_then(|at| at.parse().ok().map(Time))
                .or(metadata.creation_timestamp),
            is_deleting: metadata.deletion_timestamp.is_some(),
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
        }
    }

    /// Whether it is the revision that was stored for its hash, because any other one may claim anything.
    #[must_use]
    pub fn is_genuine(&self, deployment: &str, uid: &str) -> bool {
        self.name == name(deployment, self.made_for.as_deref().unwrap_or(uid), &self.hash)
    }

    /// Whether it was stored for a former `BasicDeployment` of this name, which was deleted without its dependents.
    #[must_use]
    pub fn is_left_by(&self, deployment: &str) -> bool {
        let is_free = self.owner.is_none() && !self.is_deleting;
        is_free && self.made_for.as_deref().is_some_and(|uid| self.is_genuine(deployment, uid))
    }

    /// The rendering in a `ControllerRevision`; `None` if somebody has replaced it.
    pub fn rendering(mut object: PrunedObject) -> Option<Value> {
        let rendering = object.data.get_mut("data")?.take();
        let is_map =
            |field: &str| rendering.pointer(field).is_none_or(|value| value.is_object() || value.is_null());
        let name = rendering.pointer("/metadata/name").and_then(Value::as_str);
        let has_name = name.is_some_and(ObjectId::is_name);
        (has_name && ["/metadata/labels", "/metadata/annotations", "/spec"].into_iter().all(is_map))
            .then_some(rendering)
    }
}

fn annotation(metadata: &ObjectMeta, key: &str) -> Option<String> {
    metadata.annotations.as_ref()?.get(key).cloned()
}
