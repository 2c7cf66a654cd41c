//! Reads the objects of a backup: the chosen ones, their owners, and what they own.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

use anyhow::Result;
use futures::{StreamExt, stream};
use kube::{
    api::ListParams,
    core::{DynamicObject, ObjectMeta},
};
use operator_kit::watch::Trimmed;
use serde::Serialize;
use serde_json::Value;

use super::{
    command_kinds::command_kinds,
    commands::{COMMAND_OF_OTHERS, is_of_others},
    folder::Folder,
    index::Scope,
    manifest::{Manifest, is_going},
};
use crate::{
    connection::Cluster,
    errors::{Gap, no_namespace, read_failure},
    kinds::Kind,
    object::Identity,
    pages::Pages,
};

/// Requests at the same time.
const MAX_CONCURRENT_READS: usize = 16;
/// The category of all kinds of the project.
const CATEGORY: &str = "catena";
/// Kinds that would do harm or nothing if they were created again, with the reason.
const LEFT_OUT: [(&str, &str, &str); 9] = [
    ("", "pods", "their controllers adopt the live ones, and replace the others"),
    ("batch", "jobs", "they would run again"),
    ("", "secrets", "a backup may be read by others; choose them with --kind secrets"),
    ("", "events", "they tell of the past"),
    ("events.k8s.io", "events", "they tell of the past"),
    ("", "endpoints", "their controller writes them"),
    ("discovery.k8s.io", "endpointslices", "their controller writes them"),
    ("coordination.k8s.io", "leases", "their holders write them"),
    ("apps", "replicasets", "their Deployment creates them again, and they adopt the live pods"),
];

/// The content of a backup.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// Whether everything could be read.
    pub complete: bool,
    /// The numbers of objects, by kind.
    pub objects: BTreeMap<String, usize>,
    /// The numbers of dependents that were left out, by kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Lists and objects that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_seen: Vec<Gap>,
}

/// Dependents that are not in the backup.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    /// Their kind.
    pub kind: String,
    /// Their number.
    pub count: usize,
    /// The reason.
    pub why: String,
}

/// A dependent that may belong to a chosen object.
struct Candidate {
    kind: Kind,
    metadata: ObjectMeta,
}

/// A backup in the making.
struct Collection<'c> {
    cluster: &'c Cluster,
    folder: Folder,
    known: HashSet<String>,
    /// Owners that are still to be read.
    owners: Vec<Identity>,
    definitions: HashSet<String>,
    /// What may still be there, although it was not read.
    unread: Vec<String>,
    saved: Saved,
}

/// Writes the objects of these kinds in a namespace, or in all, to a folder; by default all kinds of the project.
pub async fn collect(
    cluster: &Cluster,
    folder: &Path,
    kinds: &[Kind],
    namespace: Option<&str>,
) -> Result<Saved> {
    let chosen: Vec<&Kind> =
        if kinds.is_empty() { cluster.kinds.in_category(CATEGORY).collect() } else { kinds.iter().collect() };
    anyhow::ensure!(
        !chosen.is_empty(),
        "the server has no kinds of the category {CATEGORY}: install the charts, or choose kinds with --kind"
    );
    // Its lists would be empty, and all files of an earlier backup removed.
    if namespace.is_some() && cluster.lacks_namespace().await {
        return Err(no_namespace(&cluster.namespace));
    }
    // Only their kinds tell which dependents are commands, which would run again.
    let commands = command_kinds(cluster).await?;
    let scope =
        Scope { kinds: kinds.iter().map(Kind::full_name).collect(), namespace: namespace.map(str::to_owned) };
    let folder = Folder::begin(folder, scope)?;
    let mut collection = Collection {
        cluster,
        folder,
        known: HashSet::new(),
        owners: Vec::new(),
        definitions: HashSet::new(),
        unread: Vec::new(),
        saved: Saved::default(),
    };
    for kind in &chosen {
        collection.all_of(kind, namespace).await?;
    }
    collection.owners().await?;
    collection.dependents(&chosen, &commands, namespace).await?;
    collection.owners().await?;
    collection.definitions().await?;
    let Collection { folder, unread, mut saved, .. } = collection;
    saved.complete = unread.is_empty();
    folder.end(unread)?;
    Ok(saved)
}

impl Collection<'_> {
    /// All objects of a chosen kind: without these, it would be no backup.
    async fn all_of(&mut self, kind: &Kind, namespace: Option<&str>) -> Result<()> {
        let mut pages =
            Pages::whole(&self.cluster.api::<DynamicObject>(kind, namespace), ListParams::default());
        loop {
            let page = pages.next::<Value>().await;
            let Some(page) = page.map_err(|error| self.cluster.refused(kind, "", "list", error))? else {
                return Ok(());
            };
            for object in page {
                self.add(kind, object)?;
            }
        }
    }

    /// Something that may still be there: neither its file nor those of what it owns may be removed.
    fn miss(&mut self, what: String, why: String) {
        self.unread.push(format!("{what} ({why})"));
        self.saved.not_seen.push(Gap { what, why });
    }

    fn add(&mut self, kind: &Kind, mut object: Value) -> Result<()> {
        let name =
            format!("{}/{}", kind.resource.plural, object["metadata"]["name"].as_str().unwrap_or_default());
        let is_going = is_going(&object);
        // The items of a list of a built-in kind do not say what they are.
        object["apiVersion"] = kind.resource.api_version.as_str().into();
        object["kind"] = kind.resource.kind.as_str().into();
        let manifest = Manifest::of(object);
        if is_going {
            if self.folder.keep(&kind.resource.plural, &manifest)
                && self.known.insert(manifest.identity().uid)
            {
                // What it owns, and its owners, are kept up to date.
                self.owners.extend(manifest.owners());
            }
            self.saved.not_seen.push(Gap::new(name, "it is being deleted"));
            return Ok(());
        }
        if !self.known.insert(manifest.identity().uid) {
            return Ok(());
        }
        self.folder.write(&kind.resource.plural, &manifest)?;
        self.owners.extend(manifest.owners());
        if !kind.resource.group.is_empty() {
            self.definitions.insert(kind.full_name());
        }
        *self.saved.objects.entry(kind.full_name()).or_default() += 1;
        Ok(())
    }

    /// The owners of all objects, and their owners.
    async fn owners(&mut self) -> Result<()> {
        while let Some(owner) = self.owners.pop() {
            if self.known.contains(&owner.uid) {
                continue;
            }
            let Some(kind) = self.cluster.kinds.of(&owner).cloned() else {
                self.miss(owner.to_string(), "the server has no such kind".to_owned());
                continue;
            };
            match self.cluster.read::<Value>(&kind, owner.namespace.as_deref(), &owner.name).await {
                Ok(Some(object)) if object["metadata"]["uid"] == owner.uid => self.add(&kind, object)?,
                Ok(_) => self.saved.not_seen.push(Gap::new(owner.to_string(), "it is gone")),
                Err(error) => self.miss(owner.to_string(), read_failure(&error)),
            }
        }
        Ok(())
    }

    /// What the objects own, and what that owns.
    async fn dependents(
        &mut self,
        chosen: &[&Kind],
        commands: &[Kind],
        namespace: Option<&str>,
    ) -> Result<()> {
        let mut candidates = self.candidates(chosen, namespace).await;
        let is_chosen = |kind: &Kind| chosen.iter().any(|chosen| chosen.resource == kind.resource);
        let mut left_out: BTreeMap<(String, &str), usize> = BTreeMap::new();
        loop {
            let is_owned = |candidate: &Candidate| {
                let owners = candidate.metadata.owner_references.iter().flatten();
                owners.into_iter().any(|owner| self.known.contains(&owner.uid))
            };
            let (owned, others): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_owned);
            candidates = others;
            if owned.is_empty() {
                break;
            }
            let (taken, left): (Vec<_>, Vec<_>) = owned.into_iter().partition(|candidate| {
                is_chosen(&candidate.kind) || why_left_out(&candidate.kind, commands).is_none()
            });
            for candidate in left {
                let why = why_left_out(&candidate.kind, commands).unwrap_or_default();
                *left_out.entry((candidate.kind.full_name(), why)).or_default() += 1;
            }
            let cluster = self.cluster;
            let read = stream::iter(taken).map(async |candidate| {
                let (namespace, name) =
                    (candidate.metadata.namespace, candidate.metadata.name.unwrap_or_default());
                let object = cluster.read::<Value>(&candidate.kind, namespace.as_deref(), &name).await;
                (candidate.kind, name, object)
            });
            let read: Vec<_> = read.buffered(MAX_CONCURRENT_READS).collect().await;
            for (kind, name, object) in read {
                match object {
                    Ok(Some(object)) => self.add(&kind, object)?,
                    Ok(None) => {}
                    Err(error) => {
                        self.miss(format!("{}/{name}", kind.resource.plural), read_failure(&error));
                    }
                }
            }
        }
        let left_out = left_out.into_iter();
        self.saved.left_out =
            left_out.map(|((kind, why), count)| LeftOut { kind, count, why: why.to_owned() }).collect();
        Ok(())
    }

    /// All objects that have an owner, by their metadata.
    async fn candidates(&mut self, chosen: &[&Kind], namespace: Option<&str>) -> Vec<Candidate> {
        let kinds = self.cluster.kinds.preferred().filter(|kind| kind.is_listed);
        let kinds: Vec<&Kind> = kinds.filter(|kind| kind.is_namespaced || namespace.is_none()).collect();
        let cluster = self.cluster;
        let lists = stream::iter(kinds).map(async |kind| (kind, owned(cluster, kind, namespace).await));
        let lists: Vec<_> = lists.buffered(MAX_CONCURRENT_READS).collect().await;
        let mut candidates = Vec::new();
        for (kind, list) in lists {
            match list {
                Ok(list) => candidates.extend(list),
                // Some kinds are served and cannot be listed as metadata.
                Err(kube::Error::Api(status)) if matches!(status.code, 404..=406) => {}
                Err(error) => {
                    let is_chosen = chosen.iter().any(|chosen| chosen.resource == kind.resource);
                    let (what, why) = (kind.resource.plural.clone(), read_failure(&error));
                    if is_chosen || why_left_out(kind, &[]).is_none() {
                        self.miss(what, why);
                    } else {
                        // Its objects are left out in any case, and only not counted.
                        self.saved.not_seen.push(Gap { what, why });
                    }
                }
            }
        }
        candidates
    }

    /// The definitions of the kinds, as far as they may be read.
    async fn definitions(&mut self) -> Result<()> {
        let Ok(kind) = self.cluster.kinds.definitions().cloned() else { return Ok(()) };
        let mut names: Vec<String> = self.definitions.iter().cloned().collect();
        names.sort();
        for name in names {
            match self.cluster.read(&kind, None, &name).await {
                Ok(Some(definition)) => self.add(&kind, definition)?,
                // A kind of an aggregated server.
                Ok(None) => {}
                Err(error) => {
                    self.miss(format!("the definition {name}"), read_failure(&error));
                }
            }
        }
        Ok(())
    }
}

/// The metadata of the objects of a kind that have an owner.
async fn owned(cluster: &Cluster, kind: &Kind, namespace: Option<&str>) -> kube::Result<Vec<Candidate>> {
    let mut pages = Pages::metadata(&cluster.api::<DynamicObject>(kind, namespace), ListParams::default());
    let mut candidates = Vec::new();
    while let Some(page) = pages.next::<Trimmed>().await? {
        let metadata = page.into_iter().map(|object| object.metadata);
        let owned =
            metadata.filter(|metadata| metadata.owner_references.as_ref().is_some_and(|all| !all.is_empty()));
        candidates.extend(owned.map(|metadata| Candidate { kind: kind.clone(), metadata }));
    }
    Ok(candidates)
}

fn why_left_out(kind: &Kind, commands: &[Kind]) -> Option<&'static str> {
    let place = (kind.resource.group.as_str(), kind.resource.plural.as_str());
    if let Some((.., why)) = LEFT_OUT.iter().find(|(group, plural, _)| (*group, *plural) == place) {
        return Some(why);
    }
    is_of_others(kind, commands).then_some(COMMAND_OF_OTHERS)
}

#[cfg(test)]
mod tests;
