//! The folder of a backup: one file per object, so that Git shows what changed, and an index that says whether it is complete.
//!
//! A new backup is collected in a hidden folder beside the files of the former one, and takes their place only when it has come
//! to its end: until then, the former one stays as it is.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, DirEntry, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use catena_cluster::{Gap, Identity};
use catena_terminal::{sanitized, tell};
use operator_templates::{Digest, Yaml};
use serde::{Deserialize, Serialize};

use super::Manifest;

/// The name of the index.
const INDEX: &str = "backup.yaml";
/// The version of the form of a folder.
const FORMAT: u32 = 1;
/// The folder of cluster-wide objects; no namespace has such a name.
const CLUSTER_WIDE: &str = "_cluster";
/// The folder in which a new backup is collected.
const COLLECTED: &str = ".backup.new";
/// The longest name of a file, in bytes.
const MAX_FILE_NAME: usize = 255;
/// Characters of an object's name in the name of its file, if the whole name is too long. Each has up to four bytes.
const MAX_NAME: usize = 50;

/// What a backup covers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scope {
    /// The chosen kinds.
    pub kinds: BTreeSet<String>,
    /// The namespace; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl Scope {
    /// Whether nothing of a former scope would be taken for gone, because it is not looked for. A category may have got further
    /// kinds.
    fn covers(&self, former: &Self) -> bool {
        self.namespace == former.namespace && former.kinds.is_subset(&self.kinds)
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds = self.kinds.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let namespace = self.namespace.as_ref().map(|namespace| format!("namespace {namespace}"));
        write!(f, "{kinds} in {}", namespace.as_deref().unwrap_or("all namespaces"))
    }
}

/// The index of a backup. Any other file of this name is refused, because the files of a backup are deleted.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Index {
    format: u32,
    /// Whether the backup came to its end, and could read and keep everything.
    complete: bool,
    /// What it covers.
    scope: Scope,
    /// What a backup that came to its end could not read or keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_seen: Vec<String>,
    /// The files of objects, relative to the folder.
    files: BTreeSet<String>,
}

impl Index {
    /// The index of a backup that has not come to its end.
    const fn begun(scope: Scope) -> Self {
        Self { format: FORMAT, complete: false, scope, not_seen: Vec::new(), files: BTreeSet::new() }
    }

    /// Reads the index in a folder.
    ///
    /// # Errors
    /// When there is none, or it is not that of a backup.
    fn read(folder: &Path) -> Result<Self> {
        let (file, place) = (folder.join(INDEX), folder.display());
        let text = fs::read_to_string(&file).with_context(|| {
            format!("{place} is no backup: {INDEX} cannot be read; `kubectl catena backup DIR` makes one")
        })?;
        let file = file.display();
        // It is as long as the backup is large.
        let any = usize::MAX;
        let budget = serde_saphyr::budget! { max_nodes: any, max_events: any, max_total_scalar_bytes: any };
        let index: Self =
            serde_saphyr::from_str_with_options(&text, serde_saphyr::options! { budget: budget })
                .with_context(|| format!("{file} is malformed, or not the index of a backup"))?;
        let Self { format, .. } = index;
        ensure!(format == FORMAT, "{file} has format {format}, but this program reads {FORMAT}");
        // They are deleted when their objects are gone.
        if let Some(stranger) = index.files.iter().find(|file| !is_of_object(Path::new(file))) {
            bail!("{file} lists {stranger}, which is no NAMESPACE/KIND/NAME.yaml in its folder");
        }
        Ok(index)
    }
}

/// A backup in the making.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    former: Index,
    new: Index,
    /// The files that this backup wrote; the others are kept.
    taken: BTreeSet<String>,
    /// The folder itself, locked: the former backup must not change meanwhile.
    _locked: File,
}

impl Folder {
    /// Begins a backup in an empty folder or over an earlier backup, whose kinds that are not served any more stay. What begins
    /// with a dot belongs to others, such as Git.
    ///
    /// # Errors
    /// When the folder holds anything else, also a backup of another scope, cannot be written, or another backup is written to it.
    pub fn begin(path: &Path, mut scope: Scope, is_served: impl Fn(&str) -> bool) -> Result<Self> {
        let place = path.display();
        let cannot = || format!("the folder {place} cannot be written");
        create_folder(path).with_context(cannot)?;
        let locked = File::open(path).with_context(cannot)?;
        // Not every file system has locks.
        if matches!(locked.try_lock(), Err(TryLockError::WouldBlock)) {
            bail!("another backup is written to {place}: wait for its end, and try again");
        }
        let former = if path.join(INDEX).is_file() {
            let index = Index::read(path)?;
            scope.kinds.extend(index.scope.kinds.iter().filter(|kind| !is_served(kind)).cloned());
            ensure!(
                scope.covers(&index.scope),
                "{place} is a backup of {}, but this is one of {scope}: choose another folder, or the same --kind, --namespace \
                 and --all-namespaces as before",
                index.scope
            );
            index
        } else {
            let is_hidden = |entry: DirEntry| entry.file_name().to_string_lossy().starts_with('.');
            let mut entries = fs::read_dir(path).with_context(cannot)?;
            ensure!(
                entries.all(|entry| entry.is_ok_and(is_hidden)),
                "{place} is not empty, and no backup: choose a new folder, because a backup deletes the files of objects that \
                 are gone"
            );
            Index::begun(scope.clone())
        };
        let (path, new, taken) = (path.to_owned(), Index::begun(scope), BTreeSet::new());
        let folder = Self { path, former, new, taken, _locked: locked };
        // A backup that was killed leaves it.
        folder.discard().and_then(|()| create_folder(&folder.collected())).with_context(cannot)?;
        Ok(folder)
    }

    /// The kinds that it covers.
    pub fn kinds(&self) -> &BTreeSet<String> {
        &self.new.scope.kinds
    }

    fn collected(&self) -> PathBuf {
        self.path.join(COLLECTED)
    }

    /// Removes what was collected.
    fn discard(&self) -> io::Result<()> {
        unless_gone(fs::remove_dir_all(self.collected()))
    }

    /// Takes an object of a kind, named `PLURAL.GROUP`, into the new backup. Returns why it cannot be kept, if it cannot.
    ///
    /// # Errors
    /// When nothing can be written.
    pub fn add(&mut self, kind: &str, manifest: &Manifest) -> Result<Option<String>> {
        let text = match Yaml::write(manifest.object()) {
            Ok(text) => text,
            Err(error) => return Ok(Some(format!("it cannot be written as YAML: {error}"))),
        };
        // The reader has limits, for example of depth.
        if let Err(error) = Yaml::read(&text) {
            return Ok(Some(format!("its file could not be read again: {error}")));
        }
        let file = relative(kind, &manifest.identity());
        let why = match write(&self.collected().join(&file), &text).map_err(|error| (error.kind(), error)) {
            Ok(()) => {
                self.taken.insert(file.clone());
                self.new.files.insert(file);
                return Ok(None);
            }
            Err((ErrorKind::InvalidFilename, _)) => "its name is too long for the name of a file",
            Err((ErrorKind::AlreadyExists, _)) => {
                "another object has the name of its file, or it was created again meanwhile: back up again"
            }
            Err((_, error)) => return Err(error).with_context(|| format!("{file} cannot be written")),
        };
        Ok(Some(why.to_owned()))
    }

    /// Whether the new backup holds an object.
    pub fn holds(&self, kind: &str, object: &Identity) -> bool {
        self.new.files.contains(&relative(kind, object))
    }

    /// Keeps the former file of an object that is not taken anew. Returns whether there is one.
    pub fn keep(&mut self, kind: &str, object: &Identity) -> bool {
        let file = relative(kind, object);
        let is_kept = self.former.files.contains(&file);
        if is_kept {
            self.new.files.insert(file);
        }
        is_kept
    }

    /// Something could not be read or kept.
    pub fn lack(&mut self, gap: &Gap) {
        self.new.not_seen.push(gap.to_string());
    }

    /// Puts the new backup into the place of the former one, and removes the files of objects that are gone, but none of a kind
    /// whose former files are kept, because something that was not read, or what it owns, may still be there. Returns whether the
    /// backup is complete, which lacks nothing.
    ///
    /// # Errors
    /// When a file cannot be written or removed.
    pub fn end(mut self, keeps_former: impl Fn(&str) -> bool) -> Result<bool> {
        let is_kept = |file: &&String| file.split('/').nth(1).is_some_and(&keeps_former);
        self.new.files.extend(self.former.files.iter().filter(is_kept).cloned());
        // If it is interrupted from here on, all files belong to the former backup, which may lack as much as before.
        let mut together = self.former.clone();
        together.files.extend(self.new.files.iter().cloned());
        self.mark(&together)?;
        for file in &self.taken {
            let (new, place) = (self.collected().join(file), self.path.join(file));
            let moved = create_parent(&place).and_then(|()| fs::rename(new, &place));
            moved.with_context(|| format!("{} cannot be written", place.display()))?;
        }
        for file in self.former.files.difference(&self.new.files) {
            let gone = self.path.join(file);
            let removed = unless_gone(fs::remove_file(&gone));
            removed.with_context(|| format!("{} cannot be removed", gone.display()))?;
        }
        self.new.complete = self.new.not_seen.is_empty();
        self.mark(&self.new)?;
        Ok(self.new.complete)
    }

    fn mark(&self, index: &Index) -> Result<()> {
        let (new, place) = (self.collected().join(INDEX), self.path.join(INDEX));
        let text = serde_saphyr::to_string(index)?;
        let marked = write(&new, &text).and_then(|()| fs::rename(new, &place));
        marked.with_context(|| format!("{} cannot be written", place.display()))
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
        let unread = index.not_seen.iter().map(|gap| format!("this was not read or kept: {gap}"));
        let (there, lost): (Vec<&String>, Vec<&String>) =
            index.files.iter().partition(|file| path.join(file).is_file());
        let lost = lost.into_iter().map(|file| format!("{file}, which {INDEX} lists, is missing"));
        for gap in unread.chain(lost) {
            tell(&sanitized(&format!("the backup may lack something, because {gap}")));
        }
        there.into_iter().map(|file| object(&path.join(file))).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The next backup removes it otherwise.
        self.discard().ok();
    }
}

fn is_of_object(file: &Path) -> bool {
    let is_inside = file.components().all(|part| matches!(part, Component::Normal(_)));
    let is_yaml = file.extension().is_some_and(|extension| extension == "yaml");
    is_inside && is_yaml && file.components().count() == 3
}

/// The path of an object's file in the folder: `NAMESPACE/KIND/NAME.yaml`.
fn relative(kind: &str, object: &Identity) -> String {
    let namespace = object.namespace.as_deref().unwrap_or(CLUSTER_WIDE);
    let mut file = format!("{}.yaml", object.name);
    if file.len() > MAX_FILE_NAME {
        let begin: String = object.name.chars().take(MAX_NAME).collect();
        file = format!("{begin}-{}.yaml", Digest::short(&[&object.name]));
    }
    format!("{namespace}/{kind}/{file}")
}

/// The object in a file.
fn object(file: &Path) -> Result<Manifest> {
    let place = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("{place} cannot be read"))?;
    let object = Yaml::read(&text).with_context(|| format!("{place} is malformed"))?;
    Manifest::read(object).with_context(|| {
        format!("{place} is no object of a backup: it lacks apiVersion, kind, metadata.name or metadata.uid")
    })
}

/// The result of a change of a file that may not be there.
fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Creates a folder, unless it is there. A backup may hold Secrets: it is its maker's alone.
fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn create_parent(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), create_folder)
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    create_parent(file)?;
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    let end = if text.ends_with('\n') { "" } else { "\n" };
    opened.write_all(format!("{text}{end}").as_bytes())?;
    // A backup that calls itself complete has no empty files after a power cut.
    opened.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;
    use crate::manifest::tests::manifest;

    const DEPLOYMENTS: &str = "basicdeployments.catena.dev";

    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("catena-folder-{name}-{}", std::process::id())))
        }

        fn begin(&self) -> Folder {
            Folder::begin(&self.0, Scope::default(), |_| true).unwrap()
        }

        /// Makes a backup of these objects.
        fn backup(&self, objects: &[&Manifest]) {
            self.collected(objects).end(|_| false).unwrap();
        }

        fn collected(&self, objects: &[&Manifest]) -> Folder {
            let mut folder = self.begin();
            for object in objects {
                assert_eq!(folder.add(DEPLOYMENTS, object).unwrap(), None);
            }
            folder
        }

        fn read(&self) -> Vec<Manifest> {
            Folder::read(&self.0).unwrap()
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn named(name: &str) -> Manifest {
        manifest("BasicDeployment", name, &json!({}))
    }

    #[test]
    fn a_backup_is_read_as_it_was_written_and_files_of_gone_objects_are_removed() {
        let folder = Temporary::new("again");
        // Words and numbers that YAML would read as something else, and a block that kubectl does not read.
        let odd = json!({"spec": {"a": "on", "b": "0777", "c": "1:20", "d": "~", "e": "- x\n", "f": " y ", "g": "1e3", "h": "NO", "i": "", "j": "0x1F", "k": "2026-01-01", "l": "\tmake\n\tall\n", "m": {"on": "y", "08": "08"}}});
        let (web, api) = (manifest("BasicDeployment", "web", &odd), manifest("BasicDeployment", "api", &odd));
        folder.backup(&[&web, &api]);
        assert_eq!(folder.read(), [api, web.clone()]);
        folder.backup(&[&web]);
        assert_eq!(folder.read(), [web]);
        assert!(folder.0.join("shop/basicdeployments.catena.dev/web.yaml").is_file());
    }

    #[test]
    fn a_backup_that_does_not_come_to_its_end_leaves_the_former_one_as_it_was() {
        let folder = Temporary::new("interrupted");
        let web = named("web");
        folder.backup(&[&web]);
        drop(folder.collected(&[
            &manifest("BasicDeployment", "web", &json!({"spec": {"replicas": 2}})),
            &named("api"),
        ]));
        assert_eq!(folder.read(), [web]);
        assert!(!folder.0.join(COLLECTED).exists());
    }

    #[test]
    fn a_backup_that_breaks_off_while_it_takes_the_place_of_the_former_one_leaves_all_objects() {
        let folder = Temporary::new("broken-off");
        folder.backup(&[&named("gone"), &named("web")]);
        let obstacle = folder.0.join(format!("shop/{DEPLOYMENTS}/api.yaml/full"));
        fs::create_dir_all(&obstacle).unwrap();
        folder.collected(&[&named("api"), &named("web")]).end(|_| false).unwrap_err();
        assert_eq!(folder.read(), [named("gone"), named("web")]);
        fs::remove_dir_all(obstacle.parent().unwrap()).unwrap();
        folder.backup(&[&named("api"), &named("web")]);
        assert_eq!(folder.read(), [named("api"), named("web")]);
    }

    #[test]
    fn two_backups_do_not_write_into_one_folder_at_once() {
        let folder = Temporary::new("together");
        let first = folder.collected(&[&named("web")]);
        let told = Folder::begin(&folder.0, Scope::default(), |_| true).unwrap_err().to_string();
        assert!(told.starts_with("another backup is written to "), "{told}");
        assert!(first.end(|_| false).unwrap());
        folder.backup(&[&named("web"), &named("api")]);
    }

    #[test]
    fn a_backup_whose_files_another_one_removes_does_not_become_complete() {
        let folder = Temporary::new("removed");
        let backup = folder.collected(&[&named("web")]);
        // Without locks, another backup does so.
        fs::remove_dir_all(backup.collected()).unwrap();
        backup.end(|_| false).unwrap_err();
        assert!(Folder::read(&folder.0).unwrap_err().to_string().contains("was not finished"));
    }

    #[test]
    fn a_first_backup_that_breaks_off_is_no_backup() {
        let folder = Temporary::new("first");
        let Folder { path, new, .. } = &folder.begin();
        fs::write(path.join(INDEX), serde_saphyr::to_string(new).unwrap()).unwrap();
        assert!(Folder::read(&folder.0).unwrap_err().to_string().contains("was not finished"));
    }

    #[test]
    fn an_object_with_the_longest_name_is_kept() {
        let folder = Temporary::new("names");
        let names = [247, 250, 251, 253].map(|length| named(&"a".repeat(length)));
        folder.backup(&names.each_ref());
        let mut read = folder.read();
        read.sort_by_key(|manifest| manifest.identity().name);
        assert_eq!(read, names);
    }

    #[test]
    fn of_two_objects_whose_files_have_one_name_the_second_one_is_told() {
        let folder = Temporary::new("one-name");
        let long = named(&"a".repeat(251));
        let file = relative(DEPLOYMENTS, &long.identity());
        let crafted = named(Path::new(&file).file_stem().unwrap().to_str().unwrap());
        let mut backup = folder.collected(&[&long]);
        let why = backup.add(DEPLOYMENTS, &crafted).unwrap();
        assert_eq!(
            why.as_deref(),
            Some("another object has the name of its file, or it was created again meanwhile: back up again")
        );
        backup.end(|_| false).unwrap();
        assert_eq!(folder.read(), [long]);
    }

    #[test]
    fn an_index_of_any_length_is_read() {
        let folder = Temporary::new("long");
        let mut backup = folder.begin();
        backup.new.files.extend((0..300_000).map(|number| format!("shop/pods/{number}.yaml")));
        backup.mark(&backup.new).unwrap();
        assert_eq!(Index::read(&folder.0).unwrap(), backup.new);
    }

    #[test]
    fn an_object_that_could_not_be_read_again_is_refused_and_stops_no_other() {
        let folder = Temporary::new("deep");
        let deep = (0..100).fold(json!({}), |inner, _| json!({"a": inner}));
        let mut backup = folder.collected(&[&named("web")]);
        let why =
            backup.add(DEPLOYMENTS, &manifest("BasicDeployment", "deep", &json!({"spec": deep}))).unwrap();
        assert!(
            why.as_deref().is_some_and(|why| why.starts_with("its file could not be read again")),
            "{why:?}"
        );
        backup.lack(&Gap::new("deep", "too deep"));
        assert!(!backup.end(|_| false).unwrap());
        assert_eq!(folder.read(), [named("web")]);
        assert!(!Index::read(&folder.0).unwrap().complete);
    }

    #[test]
    fn a_backup_is_for_its_maker_alone() {
        let folder = Temporary::new("mode");
        folder.backup(&[&named("web")]);
        let mode = |place: &str| fs::metadata(folder.0.join(place)).unwrap().permissions().mode() & 0o777;
        for place in [".", "shop", "shop/basicdeployments.catena.dev"] {
            assert_eq!(mode(place), 0o700, "{place}");
        }
        for place in [INDEX, "shop/basicdeployments.catena.dev/web.yaml"] {
            assert_eq!(mode(place), 0o600, "{place}");
        }
    }

    #[test]
    fn a_folder_that_is_no_backup_is_refused() {
        let folder = Temporary::new("other");
        fs::create_dir_all(&folder.0).unwrap();
        assert!(Folder::read(&folder.0).unwrap_err().to_string().contains("is no backup"));
        fs::write(folder.0.join("notes.txt"), "mine").unwrap();
        assert!(
            Folder::begin(&folder.0, Scope::default(), |_| true)
                .unwrap_err()
                .to_string()
                .contains("is not empty")
        );
    }

    #[test]
    fn only_files_of_the_former_backup_are_removed_or_read() {
        let folder = Temporary::new("foreign");
        folder.backup(&[&named("web")]);
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
        assert_eq!(folder.read(), [named("web")]);
        folder.backup(&[]);
        assert!(!folder.0.join("shop/basicdeployments.catena.dev/web.yaml").exists());
        assert!(foreign.iter().all(|file| file.is_file()));
    }

    #[test]
    fn a_folder_whose_index_is_not_that_of_a_backup_is_refused() {
        let folder = Temporary::new("index");
        fs::create_dir_all(&folder.0).unwrap();
        for text in [
            "schedule: daily\n",
            "format: 1\ncomplete: true\nschedule: daily\n",
            "format: 7\ncomplete: true\nscope: {kinds: []}\nfiles: []\n",
            "format: 1\ncomplete: true\nscope: {kinds: []}\nfiles: [../precious/x.yaml]\n",
            "format: 1\ncomplete: true\nscope: {kinds: []}\nfiles: [notes.txt]\n",
        ] {
            fs::write(folder.0.join(INDEX), text).unwrap();
            Folder::begin(&folder.0, Scope::default(), |_| true).unwrap_err();
            assert_eq!(fs::read_to_string(folder.0.join(INDEX)).unwrap(), text);
        }
    }

    #[test]
    fn nothing_is_removed_that_may_only_be_unread() {
        let folder = Temporary::new("unread");
        let [web, api, job] = ["web", "api", "job"].map(named);
        folder.backup(&[&web, &api, &job]);
        let mut second = folder.begin();
        second.lack(&Gap::new("basicdeployments", "forbidden"));
        assert!(!second.end(|_| true).unwrap());
        assert!(!Index::read(&folder.0).unwrap().complete);
        assert_eq!(folder.read().len(), 3);
        // All was read: one is being deleted, and another one is gone.
        let mut third = folder.collected(&[&web]);
        assert!(third.keep(DEPLOYMENTS, &api.identity()));
        third.end(|_| false).unwrap();
        assert_eq!(folder.read(), [api, web]);
    }

    #[test]
    fn a_backup_of_another_scope_is_refused() {
        let folder = Temporary::new("scope");
        let kinds = |kinds: &[&str]| Scope {
            kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
            ..Scope::default()
        };
        let begin = |scope: &Scope| Folder::begin(&folder.0, scope.clone(), |_| true);
        begin(&kinds(&["pods"])).unwrap().end(|_| false).unwrap();
        let shop = Scope { namespace: Some("shop".into()), ..kinds(&["pods"]) };
        for other in [shop, kinds(&["secrets"])] {
            let told = begin(&other).unwrap_err().to_string();
            assert!(
                told.contains("of pods in all namespaces") && told.contains(&other.to_string()),
                "{told}"
            );
            assert!(Index::read(&folder.0).unwrap().complete);
        }
        // A category has got a further kind, or it is chosen beside the former ones.
        begin(&kinds(&["pods", "secrets"])).unwrap().end(|_| false).unwrap();
        begin(&kinds(&["pods"])).unwrap_err();
    }
}
