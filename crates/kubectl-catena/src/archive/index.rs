//! The index of a backup: whose folder it is, what the backup covers, and which files in it are those of the backup.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path},
};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// The name of the index.
pub const INDEX: &str = "backup.yaml";
/// The version of the form of a folder.
const FORMAT: u32 = 1;

/// What a backup covers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scope {
    /// The chosen kinds; empty for all of Catena.
    pub kinds: BTreeSet<String>,
    /// The namespace; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.kinds.is_empty() {
            f.write_str("all kinds of Catena")?;
        } else {
            f.write_str(&self.kinds.iter().cloned().collect::<Vec<_>>().join(", "))?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => f.write_str(" in all namespaces"),
        }
    }
}

/// The index of a backup. Any other file of this name is refused, because the files of a backup are deleted.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Index {
    format: u32,
    /// Whether the backup came to its end, and could read and keep everything.
    pub complete: bool,
    /// What it covers.
    pub scope: Scope,
    /// What a backup that came to its end could not read or keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_seen: Vec<String>,
    /// The files of objects, relative to the folder.
    pub files: BTreeSet<String>,
}

impl Index {
    /// The index of a backup that has not come to its end.
    pub const fn begun(scope: Scope) -> Self {
        Self { format: FORMAT, complete: false, scope, not_seen: Vec::new(), files: BTreeSet::new() }
    }

    /// Reads the index in a folder.
    ///
    /// # Errors
    /// When there is none, or it is not that of a backup.
    pub fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(INDEX);
        let text = fs::read_to_string(&file).with_context(|| {
            format!(
                "{} is no backup: {INDEX} cannot be read; `kubectl catena backup DIR` makes one",
                folder.display()
            )
        })?;
        let index: Self = serde_saphyr::from_str(&text)
            .with_context(|| format!("{} is malformed, or not the index of a backup", file.display()))?;
        ensure!(
            index.format == FORMAT,
            "{} has format {}, but this program reads {FORMAT}",
            file.display(),
            index.format
        );
        // They are deleted when their objects are gone.
        let stranger = index.files.iter().find(|file| !is_of_object(Path::new(file)));
        if let Some(stranger) = stranger {
            bail!("{} lists {stranger}, which is no NAMESPACE/KIND/NAME.yaml in its folder", file.display());
        }
        Ok(index)
    }
}

fn is_of_object(file: &Path) -> bool {
    let is_inside = file.components().all(|part| matches!(part, Component::Normal(_)));
    is_inside
        && file.components().count() == 3
        && file.extension().is_some_and(|extension| extension == "yaml")
}
