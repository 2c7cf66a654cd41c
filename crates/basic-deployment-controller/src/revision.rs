//! A revision of a `BasicDeployment`: a rendering that its child is on, or was.

use catena_api::keys;
use kube::api::ObjectMeta;
use operator_kit::{
    render::{is_object_name, short_digest},
    watch::{Row, TrimmedObject},
    write::owner::controller_of,
};
use serde_json::Value;

use crate::child::Owner;

/// A `ControllerRevision` as it is kept: without the rendering, which is read when it is needed.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The `BasicDeployment` that it is of.
    pub owner: Option<Owner>,
    /// Its number; the highest is the one that is wanted.
    pub number: i64,
    /// sha256 of the text that was rendered.
    pub hash: String,
    /// API version and kind of the child.
    pub kind: (String, String),
    /// What a rollback to it rejected.
    pub rejects: Rejects,
    /// Whether it was deleted, and somebody's finalizer holds it.
    pub is_deleting: bool,
}

/// The rendering that a rollback rejected, and which command did. The command stays named when nothing is rejected any
/// more: it is the proof that it was carried out, which outlives the child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejects {
    /// The hash of the rendering.
    pub hash: Option<String>,
    /// The uid of the command.
    pub command: Option<String>,
}

/// The name of the revision of a rendering.
pub fn name(deployment: &str, uid: &str, hash: &str) -> String {
    format!("{deployment}-{}", short_digest(&[uid, hash]))
}

impl Row for Revision {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn group(&self) -> Option<&str> {
        self.owner.as_ref().map(|owner| owner.uid.as_str())
    }
}

impl Revision {
    /// What is kept of a `ControllerRevision`.
    pub fn of(object: TrimmedObject) -> Self {
        let TrimmedObject { metadata, data } = object;
        let text = |field: &str| data["data"][field].as_str().unwrap_or_default().to_owned();
        Self {
            owner: controller_of(&metadata).map(Owner::of),
            number: data["revision"].as_i64().unwrap_or_default(),
            hash: annotation(&metadata, keys::HASH).unwrap_or_default(),
            kind: (text("apiVersion"), text("kind")),
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

    /// Whether it is the one that was stored for its hash: another one may say anything of itself.
    pub fn is_genuine(&self, deployment: &str, uid: &str) -> bool {
        self.name == name(deployment, uid, &self.hash)
    }

    /// The rendering that is stored in a `ControllerRevision`; `None` when somebody has put something else there.
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
