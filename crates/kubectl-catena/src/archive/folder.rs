//! The folder of a backup: one file per object, so that Git shows what changed, and an index that says whether it is complete.

use std::{
    collections::HashSet,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use operator_kit::render::{from_yaml, to_yaml};

use super::{
    index::{INDEX, Index, Scope},
    manifest::Manifest,
};
use crate::paint::sanitized;

/// The folder of cluster-wide objects; no namespace has such a name.
const CLUSTER_WIDE: &str = "_cluster";
/// The folder of a backup.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    scope: Scope,
    /// The files that are removed at the end, unless they are written again.
    former: HashSet<PathBuf>,
    written: HashSet<PathBuf>,
    /// Whether the index says that a backup is being made.
    is_begun: bool,
}

impl Folder {
    /// Begins a backup in an empty folder or over an earlier backup. What begins with a dot belongs to others, such as Git.
    ///
    /// # Errors
    /// When the folder holds anything else, also a backup of another scope, or cannot be written.
    pub fn begin(path: &Path, scope: Scope) -> Result<Self> {
        let cannot = || format!("the folder {} cannot be written", path.display());
        let mut former = HashSet::new();
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if path.join(INDEX).is_file() {
                    let index = Index::read(path)?;
                    index.refuse_other(path, &scope)?;
                    former = former_files(path, &index)?;
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
        Ok(Self { path: path.to_owned(), scope, former, written: HashSet::new(), is_begun: false })
    }

    /// Before the first change: an earlier backup is whole until then, even if the server does not answer at all.
    fn begin_change(&mut self) -> Result<()> {
        if !self.is_begun {
            self.mark(&Index::begun(self.scope.clone()))?;
            self.is_begun = true;
        }
        Ok(())
    }

    /// Writes an object.
    pub fn write(&mut self, plural: &str, manifest: &Manifest) -> Result<()> {
        self.begin_change()?;
        let file = self.path.join(relative(plural, manifest));
        let text = to_yaml(manifest.object()).context("cannot be written as YAML")?;
        file.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| replace(&file, &text))
            .with_context(|| format!("{} cannot be written", file.display()))?;
        self.written.insert(file);
        Ok(())
    }

    /// Keeps the file of an object that is not written again. Returns whether there is one.
    pub fn keep(&mut self, plural: &str, manifest: &Manifest) -> bool {
        let file = self.path.join(relative(plural, manifest));
        let is_kept = self.former.contains(&file);
        if is_kept {
            self.written.insert(file);
        }
        is_kept
    }

    /// Removes the files of objects that are gone, and says that the backup is complete. With anything that could not be read,
    /// it removes nothing, because that or what it owns may still be there, and is not complete.
    pub fn end(mut self, not_seen: Vec<String>) -> Result<()> {
        if !not_seen.is_empty() {
            self.written.extend(self.former.iter().cloned());
        }
        self.begin_change()?;
        for file in self.former.difference(&self.written) {
            match fs::remove_file(file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("{} cannot be removed", file.display()));
                }
                _ => {}
            }
        }
        let files = self.written.iter().map(|file| listed(&self.path, file)).collect();
        self.mark(&Index::ended(self.scope.clone(), not_seen, files))
    }

    fn mark(&self, index: &Index) -> Result<()> {
        let text = serde_saphyr::to_string(index)?;
        let file = self.path.join(INDEX);
        replace(&file, &text).with_context(|| format!("{} cannot be written", file.display()))
    }

    /// Reads a backup, and warns of what it could not read when it was made.
    ///
    /// # Errors
    /// When it is no backup, was interrupted, or a file of it cannot be read.
    pub fn read(path: &Path) -> Result<Vec<Manifest>> {
        let index = Index::read(path)?;
        ensure!(
            index.complete || !index.not_seen.is_empty(),
            "the backup in {} was not finished: make it again, or take an earlier version of it",
            path.display()
        );
        for gap in &index.not_seen {
            eprintln!(
                "{}",
                sanitized(&format!("the backup may lack something, because this was not read: {gap}"))
            );
        }
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
    let object = from_yaml(&text).with_context(|| format!("{} is malformed", file.display()))?;
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
        // Words and numbers that YAML would read as something else, and a block that kubectl does not read.
        let odd = json!({"spec": {"a": "on", "b": "0777", "c": "1:20", "d": "~", "e": "- x\n", "f": " y ", "g": "1e3", "h": "NO", "i": "", "j": "0x1F", "k": "2026-01-01", "l": "\tmake\n\tall\n", "m": {"on": "y", "08": "08"}}});
        let (web, api) = (manifest("BasicDeployment", "web", &odd), manifest("BasicDeployment", "api", &odd));
        let mut first = Folder::begin(&folder.0, Scope::default()).unwrap();
        first.write("basicdeployments", &web).unwrap();
        first.write("basicdeployments", &api).unwrap();
        assert!(Folder::read(&folder.0).unwrap_err().to_string().contains("was not finished"));
        first.end(Vec::new()).unwrap();
        assert_eq!(Folder::read(&folder.0).unwrap(), [api, web.clone()]);
        let mut second = Folder::begin(&folder.0, Scope::default()).unwrap();
        second.write("basicdeployments", &web).unwrap();
        second.end(Vec::new()).unwrap();
        assert_eq!(Folder::read(&folder.0).unwrap(), [web]);
        assert!(folder.0.join("shop/basicdeployments.catena.dev/web.yaml").is_file());
    }

    #[test]
    fn a_folder_that_is_no_backup_is_refused() {
        let folder = Temporary::new("other");
        fs::create_dir_all(&folder.0).unwrap();
        assert!(Folder::read(&folder.0).unwrap_err().to_string().contains("is no backup"));
        fs::write(folder.0.join("notes.txt"), "mine").unwrap();
        assert!(Folder::begin(&folder.0, Scope::default()).unwrap_err().to_string().contains("is not empty"));
    }

    #[test]
    fn only_files_of_the_former_backup_are_removed() {
        let folder = Temporary::new("foreign");
        let web = manifest("BasicDeployment", "web", &json!({}));
        Folder::begin(&folder.0, Scope::default()).unwrap().end(Vec::new()).unwrap();
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
        let mut second = Folder::begin(&folder.0, Scope::default()).unwrap();
        second.write("basicdeployments", &web).unwrap();
        // It is interrupted: the index has no list, and the object is gone afterwards.
        drop(second);
        let object = folder.0.join("shop/basicdeployments.catena.dev/web.yaml");
        assert!(object.is_file());
        Folder::begin(&folder.0, Scope::default()).unwrap().end(Vec::new()).unwrap();
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
            Folder::begin(&folder.0, Scope::default()).unwrap_err();
            assert_eq!(fs::read_to_string(folder.0.join(INDEX)).unwrap(), text);
        }
    }

    #[test]
    fn nothing_is_removed_that_may_only_be_unread() {
        let folder = Temporary::new("unread");
        let [web, api, job] = ["web", "api", "job"].map(|name| manifest("BasicDeployment", name, &json!({})));
        let mut first = Folder::begin(&folder.0, Scope::default()).unwrap();
        for object in [&web, &api, &job] {
            first.write("basicdeployments", object).unwrap();
        }
        first.end(Vec::new()).unwrap();
        let second = Folder::begin(&folder.0, Scope::default()).unwrap();
        second.end(vec!["basicdeployments (forbidden)".into()]).unwrap();
        assert!(!Index::read(&folder.0).unwrap().complete);
        assert_eq!(Folder::read(&folder.0).unwrap().len(), 3);
        // All was read: one is being deleted, and another one is gone.
        let mut third = Folder::begin(&folder.0, Scope::default()).unwrap();
        third.write("basicdeployments", &web).unwrap();
        assert!(third.keep("basicdeployments", &api));
        third.end(Vec::new()).unwrap();
        assert_eq!(Folder::read(&folder.0).unwrap(), [api, web]);
    }

    #[test]
    fn a_backup_of_another_scope_is_refused() {
        let folder = Temporary::new("scope");
        Folder::begin(&folder.0, Scope::default()).unwrap().end(Vec::new()).unwrap();
        let shop = Scope { namespace: Some("shop".into()), ..Scope::default() };
        let pods = Scope { kinds: ["pods".to_owned()].into(), ..Scope::default() };
        for other in [shop, pods] {
            let told = Folder::begin(&folder.0, other.clone()).unwrap_err().to_string();
            assert!(
                told.contains("all kinds of Catena in all namespaces") && told.contains(&other.to_string()),
                "{told}"
            );
            assert!(Index::read(&folder.0).unwrap().complete);
        }
    }
}
