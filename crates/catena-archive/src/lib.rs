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

use std::collections::BTreeMap;

use catena_cluster::{Gap, Identity};
use serde::Serialize;

pub use collect::{LeftOut, collect};
pub use restore::{Choices, restore};

use self::{
    commands::{COMMAND_OF_OTHERS, REQUEST_OF_OTHERS, Way},
    folder::{Folder, Scope},
    manifest::Manifest,
    rebind::Uids,
};

/// The content of a backup.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// Whether everything could be read and kept.
    pub complete: bool,
    /// The numbers of objects, by kind.
    pub objects: BTreeMap<String, usize>,
    /// The numbers of objects that are not in the backup, by kind: dependents; what pods use; other objects of the namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Lists and objects that could not be read or kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_seen: Vec<Gap>,
    /// Whether the files of an earlier backup stay, because something could not be read.
    #[serde(skip)]
    pub keeps_former: bool,
}

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
