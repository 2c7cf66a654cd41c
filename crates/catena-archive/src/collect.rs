//! Reads the objects of a backup: the chosen ones, their owners, and what they own.

mod definitions;
mod lacking;

use std::{
    collections::{BTreeSet, HashSet},
    path::Path,
    pin::pin,
};

use anyhow::{Error, Result, ensure};
use catena_cluster::{Cluster, Gap, Identity, Kind, PAGE_SIZE, Pages, command_kinds};
use futures::{StreamExt, stream};
use kube::{api::ListParams, core::ObjectMeta};
use operator_watch::Pruned;
use serde_json::{Value, value::RawValue};

pub use self::lacking::LeftOut;
use self::lacking::is_owned;
pub(crate) use self::lacking::{is_root_ca, why_in_no_backup};
use super::{COMMAND_OF_OTHERS, Folder, Manifest, Saved, Scope, create, manifest, references};

/// Requests at the same time.
const MAX_CONCURRENT_READS: usize = 16;
/// The category of all kinds of the project.
const CATEGORY: &str = "catena";
/// The gap of a kind that an earlier backup in the folder has.
const KIND_GONE: &str = "the server no longer has this kind, whose files stay: restore them, or, if it went on purpose, choose a new folder";

/// An object that may belong to a chosen one: its kind and its metadata.
type Candidate = (Kind, ObjectMeta);

/// A backup in the making.
struct Collection<'c> {
    cluster: &'c Cluster,
    namespace: Option<&'c str>,
    chosen: Vec<&'c Kind>,
    /// The options that choose the same kinds again, before further ones.
    choice: &'static str,
    /// The kinds of commands.
    commands: Vec<Kind>,
    folder: Folder,
    /// The uids of the objects that were seen.
    known: HashSet<String>,
    /// Owners that are still to be read.
    owners: BTreeSet<Identity>,
    /// What pods of the objects need: kinds and objects.
    used: BTreeSet<(&'static str, Identity)>,
    /// The kinds of which something could not be read.
    unread: HashSet<String>,
    /// The uids of the objects that are left out.
    left_out: HashSet<String>,
    /// Why the first list of a chosen kind was refused.
    refused: Option<Error>,
    saved: Saved,
}

/// Writes the objects of these kinds in a namespace, or in all, to a folder; by default all kinds of the project. If there are
/// none, an earlier backup in the folder stays as it is.
///
/// # Errors
/// When nothing can be read, or the folder cannot be written. An earlier backup in it stays as it is.
pub async fn collect(
    cluster: &Cluster,
    folder: &Path,
    kinds: &[Kind],
    namespace: Option<&str>,
) -> Result<Saved> {
    let cluster = &cluster.in_storage_versions().await?;
    let chosen: Vec<&Kind> = if kinds.is_empty() {
        cluster.kinds.in_category(CATEGORY).collect()
    } else {
        kinds.iter().map(|kind| cluster.kinds.preferred_of(kind)).collect()
    };
    ensure!(
        !chosen.is_empty(),
        "the server has no kinds of the category {CATEGORY}: install the charts, or choose kinds with --kind"
    );
    // Its lists would be empty, and all files of an earlier backup removed.
    if namespace.is_some() {
        cluster.ensure_namespace().await?;
    }
    let names = chosen.iter().map(|kind| kind.full_name()).collect();
    let scope = Scope { kinds: names, namespace: namespace.map(str::to_owned) };
    let is_served = |name: &str| cluster.kinds.defined_by(name).is_some();
    let mut collection = Collection {
        cluster,
        namespace,
        chosen,
        choice: if kinds.is_empty() { "--kind catena " } else { "" },
        // Only their kinds tell which dependents are commands, which would run again.
        commands: command_kinds(cluster).await?,
        folder: Folder::begin(folder, scope, is_served)?,
        known: HashSet::new(),
        owners: BTreeSet::new(),
        used: BTreeSet::new(),
        unread: HashSet::new(),
        left_out: HashSet::new(),
        refused: None,
        saved: Saved::default(),
    };
    let is_gone = |name: &&String| collection.chosen.iter().all(|kind| kind.full_name() != **name);
    let gone: Vec<_> = collection.folder.kinds().iter().filter(is_gone).cloned().collect();
    for name in gone {
        collection.miss(None, Gap::new(name, KIND_GONE));
    }
    for kind in collection.chosen.clone() {
        collection.all_of(kind).await?;
    }
    collection.owners().await?;
    collection.dependents().await?;
    collection.owners().await?;
    collection.definitions().await?;
    let Collection { folder, refused, mut saved, commands, unread, .. } = collection;
    if saved.objects.is_empty() {
        return refused.map_or(Ok(saved), Err);
    }
    // A command owns nothing that may be there, and one that is gone would run again.
    let is_command = |kind: &str| commands.iter().any(|command| command.full_name() == kind);
    let is_kept = |kind: &str| !is_command(kind) || unread.contains(kind);
    saved.complete = folder.end(|kind| saved.keeps_former && is_kept(kind))?;
    Ok(saved)
}

impl Collection<'_> {
    /// All objects of a chosen kind.
    async fn all_of(&mut self, kind: &Kind) -> Result<()> {
        let mut pages = self.cluster.pages(kind, self.namespace, ListParams::default());
        let error = loop {
            match pages.next::<Box<RawValue>>().await {
                Ok(None) => return Ok(()),
                Ok(Some(page)) => page.iter().try_for_each(|text| self.add_text(kind, text.get()))?,
                Err(error) => break error,
            }
        };
        self.miss(Some(kind), Gap::of(&kind.resource.plural, &error));
        self.refused.get_or_insert_with(|| self.cluster.refused(kind, "", "list", error));
        Ok(())
    }

    /// An object of which only the metadata may be readable, because it is nested too deeply.
    fn add_text(&mut self, kind: &Kind, text: &str) -> Result<()> {
        let error = match serde_json::from_str(text) {
            Ok(object) => return self.add(kind, object),
            Err(error) => error,
        };
        let Pruned { metadata } = serde_json::from_str(text).unwrap_or_default();
        let object = Identity::in_metadata(&kind.resource.api_version, &kind.resource.kind, &metadata);
        self.cannot_keep(kind, &object, &error.to_string());
        self.known.insert(object.uid);
        Ok(())
    }

    /// Something that may still be there: neither its file nor those of what it owns may be removed.
    fn miss(&mut self, kind: Option<&Kind>, gap: Gap) {
        self.unread.extend(kind.map(Kind::full_name));
        // Chosen kinds are listed twice.
        if !self.saved.not_seen.contains(&gap) {
            self.saved.keeps_former = true;
            self.folder.lack(&gap);
            self.saved.not_seen.push(gap);
        }
    }

    /// An object that a backup cannot hold. Its file of an earlier backup stays.
    fn cannot_keep(&mut self, kind: &Kind, object: &Identity, why: &str) {
        self.folder.keep(&kind.full_name(), object);
        self.lack(Gap::new(self.name_of(kind, object), why));
    }

    fn lack(&mut self, gap: Gap) {
        self.folder.lack(&gap);
        self.saved.not_seen.push(gap);
    }

    /// The name of an object in the report.
    fn name_of(&self, kind: &Kind, object: &Identity) -> String {
        let name = format!("{}/{}", kind.resource.plural, object.name);
        match &object.namespace {
            Some(namespace) if self.namespace.is_none() => format!("{name} in namespace {namespace}"),
            _ => name,
        }
    }

    fn add(&mut self, kind: &Kind, mut object: Value) -> Result<()> {
        let is_going = manifest::is_going(&object);
        let is_held = create::is_held(&object);
        // The items of a list of a built-in kind do not say what they are.
        object["apiVersion"] = kind.resource.api_version.as_str().into();
        object["kind"] = kind.resource.kind.as_str().into();
        let (manifest, full_name) = (Manifest::of(object), kind.full_name());
        let identity = manifest.identity();
        if is_going {
            let gap = Gap::new(self.name_of(kind, &identity), "it is being deleted");
            self.saved.not_seen.push(gap);
            // Such a command is cancelled, and would run.
            if kind.is_among(&self.commands) || !self.folder.keep(&full_name, &identity) {
                return Ok(());
            }
        }
        if !self.known.insert(identity.uid.clone()) || is_root_ca(&identity) {
            return Ok(());
        }
        // What it owns, and its owners, are kept up to date, also if its own file stays.
        self.owners.extend(manifest.owners());
        if is_going {
            return Ok(());
        }
        if is_held && manifest.is_deployment() {
            let why = "a restoration holds it paused, and so it is saved: let that finish, or set spec.paused to false, and back up again";
            self.lack(Gap::new(self.name_of(kind, &identity), why));
        }
        if let Some(why) = self.folder.add(&full_name, &manifest)? {
            self.cannot_keep(kind, &identity, &why);
            return Ok(());
        }
        let namespace = identity.namespace.as_deref();
        let uses = references::uses(manifest.object()).into_iter();
        self.used.extend(uses.map(|(kind, name)| (kind, Identity::new("", "", namespace, &name))));
        *self.saved.objects.entry(full_name).or_default() += 1;
        Ok(())
    }

    /// The owners of all objects, and their owners.
    async fn owners(&mut self) -> Result<()> {
        while let Some(owner) = self.owners.pop_first() {
            if self.known.contains(&owner.uid) || self.left_out.contains(&owner.uid) {
                continue;
            }
            let kinds = &self.cluster.kinds;
            let Some(kind) = kinds.of(&owner).map(|kind| kinds.preferred_of(kind)) else {
                self.miss(None, Gap::new(owner.to_string(), "the server has no such kind"));
                continue;
            };
            // The restoration leaves out a command of others together with what it owns.
            let left_out = self.why_left_out(kind).filter(|why| why != COMMAND_OF_OTHERS);
            let found = self.cluster.at(kind, owner.namespace.as_deref(), &owner.name).read::<Value>().await;
            let is_it = |object: &Value| object["metadata"]["uid"] == owner.uid;
            match (found, left_out) {
                (Ok(Some(object)), None) if is_it(&object) => self.add(kind, object)?,
                (Ok(Some(object)), Some(why)) if is_it(&object) => {
                    self.leave_out(kind, Some(owner.uid), why);
                    self.owners.extend(Manifest::of(object).owners());
                }
                (Ok(_), _) => self.saved.not_seen.push(Gap::new(owner.to_string(), "it is gone")),
                (Err(error), None) => self.miss(Some(kind), Gap::of(owner.to_string(), &error)),
                (Err(_), Some(why)) => self.leave_out(kind, Some(owner.uid), why),
            }
        }
        Ok(())
    }

    /// What the objects own, and what that owns.
    async fn dependents(&mut self) -> Result<()> {
        let mut candidates = self.candidates().await;
        loop {
            let is_owned = |(_, metadata): &Candidate| {
                let mut owners = metadata.owner_references.iter().flatten();
                owners.any(|owner| self.known.contains(&owner.uid))
            };
            let (owned, others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_owned);
            candidates = others;
            if owned.is_empty() {
                break;
            }
            let mut taken = Vec::new();
            for (kind, metadata) in owned {
                match self.why_left_out(&kind) {
                    Some(why) => self.leave_out(&kind, metadata.uid, why),
                    None => taken.push((kind, metadata)),
                }
            }
            let cluster = self.cluster;
            let read = stream::iter(taken).map(async |(kind, metadata)| {
                let name = metadata.name.unwrap_or_default();
                let object = cluster.at(&kind, metadata.namespace.as_deref(), &name).read::<Value>().await;
                (kind, name, object)
            });
            // Each is written before more are read: there may be thousands.
            let mut read = pin!(read.buffered(MAX_CONCURRENT_READS));
            while let Some((kind, name, object)) = read.next().await {
                match object {
                    Ok(Some(object)) => self.add(&kind, object)?,
                    Ok(None) => {}
                    Err(error) => {
                        self.miss(Some(&kind), Gap::of(format!("{}/{name}", kind.resource.plural), &error));
                    }
                }
            }
        }
        // What is there may belong to something that was not read.
        for (kind, metadata) in candidates.iter().filter(|_| self.saved.keeps_former) {
            if metadata.deletion_timestamp.is_some() && kind.is_among(&self.commands) {
                continue;
            }
            let object = Identity::in_metadata(&kind.resource.api_version, &kind.resource.kind, metadata);
            self.folder.keep(&kind.full_name(), &object);
        }
        self.name_used();
        self.count_others(&candidates);
        Ok(())
    }

    /// The objects that have an owner, by their metadata; in a single namespace also those that have none.
    async fn candidates(&mut self) -> Vec<Candidate> {
        let (cluster, namespace) = (self.cluster, self.namespace);
        let kinds = cluster.kinds.preferred().filter(|kind| kind.is_listed);
        let kinds: Vec<&Kind> = kinds.filter(|kind| kind.is_namespaced || namespace.is_none()).collect();
        let lists = stream::iter(kinds).map(async |kind| (kind, listed(cluster, kind, namespace).await));
        let lists: Vec<_> = lists.buffered(MAX_CONCURRENT_READS).collect().await;
        let mut candidates = Vec::new();
        for (kind, list) in lists {
            match list {
                Ok(list) => candidates.extend(list),
                // Some kinds are served and cannot be listed as metadata.
                Err(kube::Error::Api(status)) if matches!(status.code, 404..=406) => {}
                Err(error) => {
                    let gap = Gap::of(&kind.resource.plural, &error);
                    if self.why_left_out(kind).is_none() {
                        self.miss(Some(kind), gap);
                    } else {
                        // Its objects are left out in any case, and only not counted.
                        self.saved.not_seen.push(gap);
                    }
                }
            }
        }
        candidates
    }
}

/// The objects of a kind in a namespace; those in all namespaces only if they have an owner.
async fn listed(cluster: &Cluster, kind: &Kind, namespace: Option<&str>) -> kube::Result<Vec<Candidate>> {
    let params = ListParams::default().limit(PAGE_SIZE);
    let mut pages = Pages::of_metadata(&cluster.client, kind.url(namespace), params);
    let mut candidates = Vec::new();
    while let Some(page) = pages.next::<Pruned>().await? {
        let metadata = page.into_iter().map(|object| object.metadata);
        let counted = metadata.filter(|metadata| namespace.is_some() || is_owned(metadata));
        candidates.extend(counted.map(|metadata| (kind.clone(), metadata)));
    }
    Ok(candidates)
}

#[cfg(test)]
mod tests;
