//! A backup of objects as a folder of files, and their restoration with owners of new uids.

mod collect;
mod commands;
mod create;
mod definitions;
mod folder;
mod manifest;
mod order;
mod rebind;
mod references;
mod restore;
mod selection;

use catena_cluster::Identity;
use serde::Serialize;

pub use collect::{LeftOut, Saved, collect};
pub use restore::{Choices, restore};

use self::{
    commands::{COMMAND_OF_OTHERS, REQUEST_OF_OTHERS, Way},
    folder::{Folder, Scope},
    manifest::Manifest,
    rebind::Uids,
};

/// What became of each object in a restoration.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Created objects.
    pub restored: Vec<Identity>,
    /// Objects that were there, and got the content of the backup.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overwritten: Vec<Identity>,
    /// Objects that were there, and were left alone.
    pub present: Vec<Identity>,
    /// Those of all these that are not as in the backup.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<Note>,
    /// Objects that are not brought back on purpose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Note>,
    /// Objects that could not be brought back, or not completely.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Note>,
}

/// A remark on an object.
#[derive(Debug, Serialize)]
pub struct Note {
    /// The object.
    pub object: Identity,
    /// The remark.
    pub why: String,
}
