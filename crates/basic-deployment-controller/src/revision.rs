//! A revision of a `BasicDeployment`: a rendering that its child is on, or was.

use catena_api::keys;
use kube::api::ObjectMeta;
use operator_kit::{Row, TrimmedObject, owner::controller_of};
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
}

/// The rendering that a rollback rejected, and which command did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejects {
    /// The hash of the rendering.
    pub hash: Option<String>,
    /// The uid of the command.
    pub command: Option<String>,
}

impl Row for Revision {
    fn uid(&self) -> &str {
        &self.uid
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
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
        }
    }

    /// The rendering that is stored in a `ControllerRevision`.
    pub fn rendering(mut object: TrimmedObject) -> Value {
        object.data["data"].take()
    }
}

fn annotation(metadata: &ObjectMeta, key: &str) -> Option<String> {
    metadata.annotations.as_ref()?.get(key).cloned()
}
