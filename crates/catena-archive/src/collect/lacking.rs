//! What a backup lacks on purpose, by kind, with the options that choose it nevertheless.

use std::collections::BTreeMap;

use catena_cluster::{Identity, Kind};
use catena_terminal::first_of;
use kube::core::ObjectMeta;
use serde::Serialize;

use super::{Candidate, Collection};
use crate::{COMMAND_OF_OTHERS, commands};

/// The kind that is left out only because a backup may be read by others.
const SECRETS: &str = "secrets";
/// Kinds that would do harm if they were created again, with the reason.
const HARMFUL: [(&str, &str); 4] = [
    ("pods", "their controllers adopt the live ones, and replace the others"),
    ("jobs.batch", "they would run again"),
    (SECRETS, "a backup may be read by others"),
    ("replicasets.apps", "their Deployment creates them again, and they adopt the live pods"),
];
/// Kinds whose objects are written by controllers, or soon are of the past, with the reason.
const NO_CONTENT: [(&str, &str); 6] = [
    ("events", "they tell of the past"),
    ("events.events.k8s.io", "they tell of the past"),
    ("endpoints", "their controller writes them"),
    ("endpointslices.discovery.k8s.io", "their controller writes them"),
    ("leases.coordination.k8s.io", "their holders write them"),
    ("pods.metrics.k8s.io", "they tell of the past"),
];
/// The `ConfigMap` that Kubernetes writes into each namespace, with the certificate of its own cluster.
const ROOT_CA: &str = "kube-root-ca.crt";
/// Objects that Kubernetes puts into each namespace.
const OF_EACH_NAMESPACE: [(&str, &str); 2] = [("configmaps", ROOT_CA), ("serviceaccounts", "default")];
/// The number of names in a sentence.
const MAX_NAMES: usize = 5;

/// Objects that are not in the backup.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    /// Their kind.
    pub kind: String,
    /// Their number.
    pub count: usize,
    /// The reason.
    pub why: String,
}

/// Why no backup has objects of a kind, unless that is chosen; `None` if backups have them.
pub fn why_in_no_backup(kind: &Kind) -> Option<&'static str> {
    let (name, mut all) = (kind.full_name(), HARMFUL.iter().chain(&NO_CONTENT));
    all.find(|(left_out, _)| *left_out == name).map(|(_, why)| *why)
}

/// Whether an object holds the certificate of the cluster, and would be wrong in any other one.
pub fn is_root_ca(object: &Identity) -> bool {
    object.api_version == "v1" && object.kind == "ConfigMap" && object.name == ROOT_CA
}

impl Collection<'_> {
    /// Why dependents and owners of a kind are left out; `None` if they are not.
    pub(super) fn why_left_out(&self, kind: &Kind) -> Option<String> {
        let name = kind.full_name();
        if self.is_chosen(&name) {
            return None;
        }
        let foreign = commands::is_of_others(kind, &self.commands).then_some(COMMAND_OF_OTHERS);
        let why = why_in_no_backup(kind).or(foreign)?;
        Some(if name == SECRETS { format!("{why}: add {}", self.choice_of(&name)) } else { why.to_owned() })
    }

    /// Counts an object that is not in the backup once.
    pub(super) fn leave_out(&mut self, kind: &Kind, uid: Option<String>, why: String) {
        if uid.is_some_and(|uid| !self.left_out.insert(uid)) {
            return;
        }
        let kind = kind.full_name();
        match self.saved.left_out.iter_mut().find(|left_out| left_out.kind == kind && left_out.why == why) {
            Some(left_out) => left_out.count += 1,
            None => self.saved.left_out.push(LeftOut { kind, count: 1, why }),
        }
    }

    /// The options that also choose a kind.
    fn choice_of(&self, kind: &str) -> String {
        format!("{}--kind {kind}", self.choice)
    }

    fn is_chosen(&self, kind: &str) -> bool {
        self.chosen.iter().any(|chosen| chosen.full_name() == kind)
    }

    /// Names what pods of the saved objects need, and the backup lacks.
    pub(super) fn name_used(&mut self) {
        let mut lacking: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (kind, object) in &self.used {
            if !self.is_chosen(kind) && !self.folder.holds(kind, object) {
                let place = object.namespace.as_ref().filter(|_| self.namespace.is_none());
                let place = place.map_or_else(String::new, |namespace| format!("{namespace}/"));
                lacking.entry(*kind).or_default().push(place + &object.name);
            }
        }
        for (kind, names) in lacking {
            let some = first_of(&names, MAX_NAMES);
            let why = format!("pods use {some}: add {}", self.choice_of(kind));
            self.saved.left_out.push(LeftOut { kind: kind.to_owned(), count: names.len(), why });
        }
    }

    /// Counts what else the namespace holds: objects of other kinds that nothing owns.
    pub(super) fn count_others(&mut self, candidates: &[Candidate]) {
        for (kind, metadata) in candidates {
            let (full_name, name) = (kind.full_name(), metadata.name.as_deref().unwrap_or_default());
            let object = Identity::new("", "", metadata.namespace.as_deref(), name);
            let is_known = metadata.uid.as_ref().is_some_and(|uid| self.known.contains(uid))
                || self.used.contains(&(&*full_name, object));
            let is_content = NO_CONTENT.iter().all(|(other, _)| *other != full_name)
                && !OF_EACH_NAMESPACE.contains(&(&*full_name, name))
                && !is_owned(metadata);
            if is_content && !is_known && !self.is_chosen(&full_name) {
                let why = format!("not chosen: add {}", self.choice_of(&full_name));
                self.leave_out(kind, metadata.uid.clone(), why);
            }
        }
    }
}

/// Whether an object has an owner.
pub(super) fn is_owned(metadata: &ObjectMeta) -> bool {
    metadata.owner_references.as_ref().is_some_and(|owners| !owners.is_empty())
}
