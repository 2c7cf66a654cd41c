//! The folder of a backup: one file per object, so that Git shows what changed, and an index that says whether it is complete.

use std::{
    collections::HashSet,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{
    index::{INDEX, Index},
    manifest::Manifest,
};

/// The folder of cluster-wide objects; no namespace has such a name.
const CLUSTER_WIDE: &str = "_cluster";
/// The folder of a backup.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The files that are removed at the end, unless they are written again.
    former: HashSet<PathBuf>,
    written: HashSet<PathBuf>,
}

impl Folder {
    /// Begins a backup in an empty folder or over an earlier backup. What begins with a dot belongs to others, such as Git.
    ///
    /// # Errors
    /// When the folder holds anything else, or cannot be written.
    pub fn begin(path: &Path) -> Result<Self> {
        let cannot = || format!("the folder {} cannot be written", path.display());
        let mut former = HashSet::new();
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if path.join(INDEX).is_file() {
                    former = former_files(path, &Index::read(path)?)?;
                } else if entries.any(|entry| entry.is_ok_and(|entry| !is_hidden(&entry.path()))) {
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
        let folder = Self { path: path.to_owned(), former, written: HashSet::new() };
        folder.mark(&Index::begun())?;
        Ok(folder)
    }

    /// Writes an object.
    pub fn write(&mut self, plural: &str, manifest: &Manifest) -> Result<()> {
        let file = self.path.join(relative(plural, manifest));
        let text = serde_saphyr::to_string(manifest.object()).context("cannot be written as YAML")?;
        file.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| replace(&file, &text))
            .with_context(|| format!("{} cannot be written", file.display()))?;
        self.written.insert(file);
        Ok(())
    }

    /// Removes the files of objects that are gone, and says that the backup is complete.
    pub fn end(self) -> Result<()> {
        for file in self.former.difference(&self.written) {
            match fs::remove_file(file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("{} cannot be removed", file.display()));
                }
                _ => {}
            }
        }
        let files = self.written.iter().map(|file| listed(&self.path, file)).collect();
        self.mark(&Index::ended(files))
    }

    fn mark(&self, index: &Index) -> Result<()> {
        let text = serde_saphyr::to_string(index)?;
        let file = self.path.join(INDEX);
        replace(&file, &text).with_context(|| format!("{} cannot be written", file.display()))
    }

    /// Reads a backup.
    ///
    /// # Errors
    /// When it is no backup, is incomplete, or a file of it cannot be read.
    pub fn read(path: &Path) -> Result<Vec<Manifest>> {
        let index = Index::read(path)?;
        ensure!(
            index.complete,
            "the backup in {} was not finished: make it again, or take an earlier version of it",
            path.display()
        );
        let mut manifests = Vec::new();
        for file in files(path)? {
            let manifest = object(&file)?;
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

/// The files of an earlier backup. Without a list, because it was interrupted, these are the files that hold the object that
/// their path names.
fn former_files(path: &Path, index: &Index) -> Result<HashSet<PathBuf>> {
    let is_former = |file: &PathBuf| match &index.files {
        Some(files) => files.contains(&listed(path, file)),
        None => object(file).ok().flatten().is_some_and(|manifest| {
            let kind = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            let plural = kind.split('.').next().unwrap_or_default();
            *file == path.join(relative(plural, &manifest))
        }),
    };
    Ok(files(path)?.into_iter().filter(is_former).collect())
}

/// The path of an object's file in the folder.
fn relative(plural: &str, manifest: &Manifest) -> PathBuf {
    let identity = manifest.identity();
    let group = identity.group();
    let kind = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let namespace = identity.namespace.as_deref().unwrap_or(CLUSTER_WIDE);
    Path::new(namespace).join(kind).join(format!("{}.yaml", identity.name))
}

/// A file as the index lists it.
fn listed(path: &Path, file: &Path) -> String {
    file.strip_prefix(path).unwrap_or(file).to_string_lossy().into_owned()
}

/// The object in a file; `None` if it is no object of a backup.
fn object(file: &Path) -> Result<Option<Manifest>> {
    let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let object: Value =
        serde_saphyr::from_str(&text).with_context(|| format!("{} is malformed", file.display()))?;
    Ok(Manifest::read(object))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// The files of objects: `NAMESPACE/KIND/NAME.yaml`.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let folders_in = |path: &Path| -> Result<Vec<PathBuf>> {
        Ok(entries(path)?.into_iter().filter(|entry| entry.is_dir() && !is_hidden(entry)).collect())
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

    #[test]
    fn only_files_of_the_former_backup_are_removed() {
        let folder = Temporary::new("foreign");
        let web = manifest("BasicDeployment", "web", &json!({}));
        Folder::begin(&folder.0).unwrap().end().unwrap();
        let foreign = [
            ".github/workflows/ci.yaml",
            "ansible/roles/main.yaml",
            "shop/basicdeployments.catena.dev/mine.yaml",
        ]
        .map(|file| folder.0.join(file));
        for file in &foreign {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "a: b\n").unwrap();
        }
        let mut second = Folder::begin(&folder.0).unwrap();
        second.write("basicdeployments", &web).unwrap();
        // It is interrupted: the index has no list, and the object is gone afterwards.
        drop(second);
        let object = folder.0.join("shop/basicdeployments.catena.dev/web.yaml");
        assert!(object.is_file());
        Folder::begin(&folder.0).unwrap().end().unwrap();
        assert!(!object.exists());
        assert!(foreign.iter().all(|file| file.is_file()));
    }

    #[test]
    fn a_folder_whose_index_is_not_that_of_a_backup_is_refused() {
        let folder = Temporary::new("index");
        fs::create_dir_all(&folder.0).unwrap();
        for text in [
            "schedule: daily\n",
            "format: 1\ncomplete: true\nschedule: daily\n",
            "format: 7\ncomplete: true\n",
        ] {
            fs::write(folder.0.join(INDEX), text).unwrap();
            Folder::begin(&folder.0).unwrap_err();
            assert_eq!(fs::read_to_string(folder.0.join(INDEX)).unwrap(), text);
        }
    }
}
