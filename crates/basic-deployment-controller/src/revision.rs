//! A revision of a `BasicDeployment`: a rendering that its child is on, or was.

use std::sync::Arc;

use catena_api::keys;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use operator_kit::{
    object::ObjectId,
    render::{is_object_name, short_digest},
    watch::{Row, TrimmedObject},
    write::owner::controller_of,
};
use serde_json::Value;

use crate::child::{Child, Marks};

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
    /// The rejection by a rollback to it.
    pub rejects: Rejects,
    /// Whether it is being deleted, and held by somebody's finalizer.
    pub is_deleting: bool,
}

/// The rendering that a rollback rejected, and the command of that rollback. The command remains when nothing is
/// rejected any more, as the proof that it was carried out, which outlives the child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejects {
    /// The hash of the rendering.
    pub hash: Option<String>,
    /// The uid of the command.
    pub command: Option<String>,
}

/// A rollback that holds a `BasicDeployment` on an older revision than its spec and template give.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// The hash of the held rendering.
    pub hash: String,
    /// The revision; `None` when somebody deleted it.
    pub revision: Option<Arc<Revision>>,
    /// The rejected rendering, and the command that rejected it.
    pub rejects: Rejects,
}

/// The name of the revision of a rendering.
#[must_use]
pub fn name(deployment: &str, uid: &str, hash: &str) -> String {
    format!("{deployment}-{}", short_digest(&[uid, hash]))
}

/// The revision with a hash.
#[must_use]
pub fn find<'r>(revisions: &'r [Arc<Revision>], hash: &str) -> Option<&'r Arc<Revision>> {
    revisions.iter().find(|revision| revision.hash == hash)
}

/// The marks that stay on the child in its next write.
pub fn kept_marks(desired: &str, pin: Option<&Pin>, child: Option<&Child>) -> Marks {
    let on_child = child.map(Child::marks).unwrap_or_default();
    match pin {
        Some(Pin { rejects: Rejects { hash, command }, .. }) => Marks {
            last_command: on_child.last_command.or_else(|| command.clone()),
            rolled_back_by: command.clone(),
            rejected: hash.clone(),
        },
        None => Marks {
            rolled_back_by: on_child
                .rolled_back_by
                .filter(|_| child.is_some_and(|child| child.hash() == desired)),
            rejected: None,
            ..on_child
        },
    }
}

impl Pin {
    /// The rollback that holds the child. The newest one is that on a child which no revision records yet; any other one is
    /// that of the last revision, because former children keep the marks of earlier ones.
    #[must_use]
    pub fn of(rendered: &str, children: &[Arc<Child>], revisions: &[Arc<Revision>]) -> Option<Self> {
        let holds = |pin: &Self| pin.rejects.hash.as_deref() == Some(rendered);
        let is_new = |pin: &Self| {
            let by = pin.rejects.command.as_ref();
            by.is_some() && revisions.iter().all(|revision| revision.rejects.command.as_ref() != by)
        };
        let new: Vec<_> = children.iter().map(|child| Self::on(child, revisions)).filter(is_new).collect();
        if let Some(newest) = new.iter().find(|pin| pin.revision.is_some()) {
            return Some(newest).filter(|newest| holds(newest)).cloned();
        }
        // The revision that recorded the others may have been deleted.
        Self::recorded(children, revisions).into_iter().chain(new).find(holds)
    }

    /// What a child bears.
    fn on(child: &Child, revisions: &[Arc<Revision>]) -> Self {
        let Marks { rolled_back_by: command, rejected: hash, .. } = child.marks();
        let revision = find(revisions, child.hash()).cloned();
        Self { hash: child.hash().to_owned(), revision, rejects: Rejects { hash, command } }
    }

    /// What the last revision records, unless its child does not bear it.
    fn recorded(children: &[Arc<Child>], revisions: &[Arc<Revision>]) -> Option<Self> {
        let last = revisions.last()?;
        let is_denied =
            |child: &Arc<Child>| child.hash() == last.hash && child.marks().rejected != last.rejects.hash;
        let rejects = last.rejects.clone();
        let recorded = Self { hash: last.hash.clone(), revision: Some(last.clone()), rejects };
        (!children.iter().any(is_denied)).then_some(recorded)
    }
}

impl Row for Revision {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: &self.namespace, name: &self.name, uid: &self.uid }
    }

    /// The uid of its owner. An orphan is found by the name of the `BasicDeployment`, which its own begins with.
    fn group(&self) -> Option<&str> {
        match &self.owner {
            Some(owner) => Some(owner.uid.as_str()),
            None => self.name.rsplit_once('-').map(|(deployment, _)| deployment),
        }
    }
}

impl Revision {
    /// Trims a `ControllerRevision`.
    #[must_use]
    pub fn of(object: TrimmedObject) -> Self {
        let TrimmedObject { metadata, data } = object;
        let text = |field: &str| data["data"][field].as_str().unwrap_or_default().to_owned();
        let owner = controller_of(&metadata).cloned();
        let label = metadata.labels.as_ref().filter(|_| owner.is_none());
        let label = label.and_then(|labels| labels.get(keys::DEPLOYMENT_UID).cloned());
        Self {
            made_for: annotation(&metadata, keys::MADE_FOR).or(label),
            owner,
            number: data["revision"].as_i64().unwrap_or_default(),
            hash: annotation(&metadata, keys::HASH).unwrap_or_default(),
            kind: (text("apiVersion"), text("kind")),
            child: data["data"]["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            rejects: Rejects {
                hash: annotation(&metadata, keys::REJECTED_HASH),
                command: annotation(&metadata, keys::ROLLED_BACK_BY),
            },
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
        let made_for = self.made_for.as_ref().filter(|_| is_free);
        made_for.is_some_and(|uid| self.name == name(deployment, uid, &self.hash))
    }

    /// The rendering in a `ControllerRevision`; `None` if somebody has replaced it.
    pub fn rendering(mut object: TrimmedObject) -> Option<Value> {
        let rendering = object.data.get_mut("data")?.take();
        let is_map =
            |field: &str| rendering.pointer(field).is_none_or(|value| value.is_object() || value.is_null());
        let name = rendering.pointer("/metadata/name").and_then(Value::as_str);
        let has_name = name.is_some_and(is_object_name);
        (has_name && ["/metadata/labels", "/metadata/annotations", "/spec"].into_iter().all(is_map))
            .then_some(rendering)
    }
}

fn annotation(metadata: &ObjectMeta, key: &str) -> Option<String> {
    metadata.annotations.as_ref()?.get(key).cloned()
}
