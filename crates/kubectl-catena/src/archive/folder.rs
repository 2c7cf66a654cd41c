//! The folder of a backup: one file per object, so that Git shows what changed, and an index that says whether it is complete.

use std::{
    collections::HashSet,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::manifest::Manifest;

/// The name of the index.
const INDEX: &str = "backup.yaml";
/// The folder of cluster-wide objects; no namespace has such a name.
const CLUSTER_WIDE: &str = "_cluster";
/// The version of the form of a folder.
const FORMAT: u32 = 1;

/// The index of a backup.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    format: u32,
    complete: bool,
}

/// The folder of a backup.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    written: HashSet<PathBuf>,
}

impl Folder {
    /// Begins a backup in an empty folder or over an earlier backup.
    ///
    /// # Errors
    /// When the folder holds anything else, or cannot be written.
    pub fn begin(path: &Path) -> Result<Self> {
        let cannot = || format!("the folder {} cannot be written", path.display());
        match fs::read_dir(path) {
            Ok(mut entries) => {
                let holds_others = entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != ".git"));
                if holds_others && !path.join(INDEX).is_file() {
                    bail!(
                        "{} is not empty, and no backup: choose a new folder, because a backup deletes the files of objects \
                         that are gone",
                        path.display()
                    );
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(path).with_context(cannot)?;
            }
            Err(error) => return Err(error).with_context(cannot),
        }
        let folder = Self { path: path.to_owned(), written: HashSet::new() };
        folder.mark(false)?;
        Ok(folder)
    }

    /// Writes an object.
    pub fn write(&mut self, plural: &str, manifest: &Manifest) -> Result<()> {
        let identity = manifest.identity();
        let group = identity.group();
        let kind = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let namespace = identity.namespace.as_deref().unwrap_or(CLUSTER_WIDE);
        let place = self.path.join(namespace).join(kind);
        let file = place.join(format!("{}.yaml", identity.name));
        let text = serde_saphyr::to_string(manifest.object()).context("cannot be written as YAML")?;
        fs::create_dir_all(&place)
            .and_then(|()| replace(&file, &text))
            .with_context(|| format!("{} cannot be written", file.display()))?;
        self.written.insert(file);
        Ok(())
    }

    /// Removes the files of objects that are gone, and says that the backup is complete.
    pub fn end(self) -> Result<()> {
        for file in files(&self.path)? {
            if !self.written.contains(&file) {
                fs::remove_file(&file).with_context(|| format!("{} cannot be removed", file.display()))?;
            }
        }
        self.mark(true)
    }

    fn mark(&self, complete: bool) -> Result<()> {
        let text = serde_saphyr::to_string(&Index { format: FORMAT, complete })?;
        let file = self.path.join(INDEX);
        replace(&file, &text).with_context(|| format!("{} cannot be written", file.display()))
    }

    /// Reads a backup.
    ///
    /// # Errors
    /// When it is no backup, is incomplete, or a file of it cannot be read.
    pub fn read(path: &Path) -> Result<Vec<Manifest>> {
        let index = path.join(INDEX);
        let text = fs::read_to_string(&index).with_context(|| {
            format!(
                "{} is no backup: {INDEX} cannot be read; `kubectl catena backup DIR` makes one",
                path.display()
            )
        })?;
        let Index { format, complete } =
            serde_saphyr::from_str(&text).with_context(|| format!("{} is malformed", index.display()))?;
        ensure!(format == FORMAT, "{} has format {format}, but this program reads {FORMAT}", index.display());
        ensure!(
            complete,
            "the backup in {} was not finished: make it again, or take an earlier version of it",
            path.display()
        );
        let mut manifests = Vec::new();
        for file in files(path)? {
            let text =
                fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
            let object: Value =
                serde_saphyr::from_str(&text).with_context(|| format!("{} is malformed", file.display()))?;
            let manifest = Manifest::read(object);
            manifests.push(manifest.with_context(|| {
                format!(
                    "{} is no object of a backup: it lacks apiVersion, kind, metadata.name or metadata.uid",
                    file.display()
                )
            })?);
        }
        Ok(manifests)
    }
}

/// The files of objects: `NAMESPACE/KIND/NAME.yaml`.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let folders_in = |path: &Path| -> Result<Vec<PathBuf>> {
        Ok(entries(path)?.into_iter().filter(|entry| entry.is_dir() && !entry.ends_with(".git")).collect())
    };
    let mut files = Vec::new();
    for namespace in folders_in(path)? {
        for kind in folders_in(&namespace)? {
            let of_kind = entries(&kind)?.into_iter();
            files
                .extend(of_kind.filter(|file| file.extension().is_some_and(|extension| extension == "yaml")));
        }
    }
    Ok(files)
}

fn entries(path: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("{} cannot be read", path.display());
    let listed = fs::read_dir(path).with_context(cannot)?;
    let mut paths: Vec<PathBuf> =
        listed.map(|entry| Ok(entry.with_context(cannot)?.path())).collect::<Result<_>>()?;
    paths.sort();
    Ok(paths)
}

/// Replaces a file as a whole, so that a crash leaves the old or the new one.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let temporary = file.with_extension("yaml.new");
    let end = if text.ends_with('\n') { "" } else { "\n" };
    fs::write(&temporary, format!("{text}{end}"))?;
    fs::rename(&temporary, file)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::archive::manifest::tests::manifest;

    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("catena-folder-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    #[test]
    fn a_backup_is_read_as_it_was_written_and_files_of_gone_objects_are_removed() {
        let folder = Temporary::new("again");
        // Words and numbers that YAML would read as something else.
        let odd = json!({"spec": {"a": "on", "b": "0777", "c": "1:20", "d": "~", "e": "- x\n", "f": " y ", "g": "1e3", "h": "NO", "i": "", "j": "0x1F", "k": "2026-01-01"}});
        let (web, api) = (manifest("BasicDeployment", "web", &odd), manifest("BasicDeployment", "api", &odd));
        let mut first = Folder::begin(&folder.0).unwrap();
        first.write("basicdeployments", &web).unwrap();
        first.write("basicdeployments", &api).unwrap();
        assert!(Folder::read(&folder.0).unwrap_err().to_string().contains("was not finished"));
        first.end().unwrap();
        assert_eq!(Folder::read(&folder.0).unwrap(), [api, web.clone()]);
        let mut second = Folder::begin(&folder.0).unwrap();
        second.write("basicdeployments", &web).unwrap();
        second.end().unwrap();
        assert_eq!(Folder::read(&folder.0).unwrap(), [web]);
        assert!(folder.0.join("shop/basicdeployments.catena.dev/web.yaml").is_file());
    }

    #[test]
    fn a_folder_that_is_no_backup_is_refused() {
        let folder = Temporary::new("other");
        fs::create_dir_all(&folder.0).unwrap();
        assert!(Folder::read(&folder.0).unwrap_err().to_string().contains("is no backup"));
        fs::write(folder.0.join("notes.txt"), "mine").unwrap();
        assert!(Folder::begin(&folder.0).unwrap_err().to_string().contains("is not empty"));
    }
}
