//! The index of a backup: whose folder it is, and which files in it are those of the backup.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// The name of the index.
pub const INDEX: &str = "backup.yaml";
/// The version of the form of a folder.
const FORMAT: u32 = 1;

/// The index of a backup. Any other file of this name is refused, because the files of a backup are deleted.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Index {
    format: u32,
    /// Whether the backup came to its end.
    pub complete: bool,
    /// The files of objects, relative to the folder; `None` while a backup is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<BTreeSet<String>>,
}

impl Index {
    /// The index of a backup that is being made.
    pub const fn begun() -> Self {
        Self { format: FORMAT, complete: false, files: None }
    }

    /// The index of a backup with these files.
    pub const fn ended(files: BTreeSet<String>) -> Self {
        Self { format: FORMAT, complete: true, files: Some(files) }
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
        Ok(index)
    }
}
