//! One process of a controller: its caches, its memory, and the writes that it is about to send.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use operator_kit::run::Backoffs;

use super::{
    content::{Json, Object, Server},
    controllers::{Controller, is_shown},
    write::Write,
};
use crate::{
    cache::Cache,
    harness::failure,
    server::{
        Event,
        object::{Key, Kind, Text, Version},
    },
};

#[derive(Clone, Debug, Hash)]
pub struct Process {
    pub controller: Controller,
    /// A cache for each watched kind, in the order of [`Controller::watches`].
    pub caches: Vec<Cache<Json, Json>>,
    pub memory: Memory,
    /// The failures of each object, by its uid.
    pub held: BTreeMap<Text, Held>,
    /// The writes of the present step.
    pub plan: VecDeque<Write>,
    /// A write of its predecessor, which is still on its way to the server.
    pub late: Option<Write>,
}

/// What it remembers between passes. Each controller has its own part.
#[derive(Clone, Debug, Default, Hash)]
pub struct Memory {
    /// basic-deployment-controller: the last applied rendering, and its state on the server.
    pub applied: Option<(Text, Json)>,
    /// The last replicas that were set on each child.
    pub replicas: BTreeMap<Text, i32>,
    /// The time of the last write to the status of the only `BasicDeployment`.
    pub written: Option<u8>,
    /// command-runner: commands that ran although their statuses do not say so, by their uids.
    pub ran: BTreeSet<Text>,
    /// command-reaper: deleted commands, by their names: the uid, and a digest of the spec.
    pub removed: BTreeMap<Text, (Text, u64)>,
    /// backup-controller: refusals in a row to create a backup, by the uid of the object.
    pub refusals: BTreeMap<Text, u32>,
}

/// The failures of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Held {
    /// The generation that failed: another one is tried at once.
    generation: i64,
    /// The steps, and the items where only those failed.
    steps: BTreeSet<(&'static str, Option<Text>)>,
}

impl Process {
    pub fn begin(controller: Controller, server: &Server) -> Self {
        let caches = controller.watches().iter().map(|kind| {
            let mut cache = Cache::default();
            cache.list(server, |object| is_shown(*kind, object));
            cache
        });
        Self {
            controller,
            caches: caches.collect(),
            memory: Memory::default(),
            held: BTreeMap::new(),
            plan: VecDeque::new(),
            late: None,
        }
    }

    /// A change that the watches have yet to show.
    pub fn hear(&mut self, event: &Event<Json, Json>) {
        for (kind, cache) in self.controller.watches().iter().zip(&mut self.caches) {
            cache.hear(event, |object| is_shown(*kind, object));
        }
    }

    /// Shows this number of further events of each watch.
    pub fn show(&mut self, counts: &[usize]) {
        for (place, count) in counts.iter().enumerate() {
            for uid in self.caches[place].show(*count) {
                if self.controller.reconciles().contains(&self.controller.watches()[place]) {
                    self.forget(&uid);
                }
            }
        }
    }

    /// Forgets an object that is gone. The deletion of a command is remembered.
    fn forget(&mut self, uid: &Text) {
        self.held.remove(uid);
        let Memory { mut ran, removed, mut refusals, .. } = std::mem::take(&mut self.memory);
        ran.remove(uid);
        refusals.remove(uid);
        self.memory = Memory { ran, removed, refusals, ..Memory::default() };
    }

    /// The cache of a kind that the controller watches.
    pub fn cache(&self, kind: Kind) -> &Cache<Json, Json> {
        let place = self.controller.watches().iter().position(|watched| *watched == kind);
        &self.caches[place.expect("a controller reads only what it watches")]
    }

    /// The places of the objects in its caches that a pass may be about.
    pub fn known(&self) -> impl Iterator<Item = &Key> {
        let kinds = self.controller.reconciles().iter();
        kinds.flat_map(move |kind| self.cache(*kind).rows()).map(|row| &row.meta.key)
    }

    /// A write was answered with this version, or whether it took effect before is unknown: decisions wait until its
    /// watch has passed it.
    pub fn awaits(&mut self, key: &Key, version: Version) {
        if let Some(place) = self.controller.watches().iter().position(|watched| *watched == key.kind) {
            self.caches[place].wrote(version);
        }
    }

    /// The steps that a pass over an object may take.
    pub fn backoffs(&self, object: &Object) -> Backoffs {
        let held = self.held.get(&object.meta.uid).filter(|held| held.generation == object.meta.generation);
        let Some(held) = held else { return Backoffs::default() };
        let mut held_up = Backoffs::default();
        for (step, item) in &held.steps {
            held_up = match (*step, item) {
                ("", _) => return Backoffs::of_everything(failure()),
                (step, None) => held_up.and_step(step, failure()),
                (step, Some(item)) => held_up.and_item(step, item, failure()),
            };
        }
        held_up
    }

    /// A step failed, as a whole or for an item.
    pub fn fails(&mut self, object: &Object, step: &'static str, item: Option<Text>) {
        let held = self.held.entry(object.meta.uid.clone()).or_default();
        if held.generation != object.meta.generation {
            *held = Held { generation: object.meta.generation, ..Held::default() };
        }
        held.steps.insert((step, item));
    }

    /// Whether all own writes are shown after these numbers of further events.
    pub fn is_current_after(&self, counts: &[usize]) -> bool {
        self.caches.iter().zip(counts).all(|(cache, count)| cache.is_current_after(*count))
    }

    /// The number of events that each watch has yet to show.
    pub fn lags(&self) -> Vec<usize> {
        self.caches.iter().map(Cache::lag).collect()
    }
}
