//! One process of the controller: its caches, its memory, and the step that it is about to take.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use basic_replicaset_controller::step;
use catena_api::keys;
use operator_kit::{report::StatusAge, run::Backoffs};

use super::content::{Object, Server, Spec, Status, Stored};
use crate::{
    cache::Cache,
    clock,
    harness::failure,
    server::{
        Event,
        object::{Kind, Text, Version},
        operation::Operation,
    },
};

#[derive(Clone, Debug, Default, Hash)]
pub struct Process {
    pub sets: Cache<Spec, Status>,
    pub pods: Cache<Spec, Status>,
    /// Names that were taken when pods were to be created: name and revision, by slot.
    pub taken: BTreeMap<u32, (Text, Text)>,
    /// Pods that resemble the set's own, by uid and revision.
    pub others: BTreeSet<(Text, Text)>,
    /// The failures: the step, the item if only that failed, and whether a retry is due.
    pub held: BTreeMap<(&'static str, Option<Text>), bool>,
    /// The generation of the failures.
    pub held_for: i64,
    /// The result of the first rendering.
    pub rendered: Option<Text>,
    /// The time of the last write to the set's status.
    pub told_at: Option<u8>,
    /// The writes of the current step.
    pub plan: VecDeque<Write>,
}

/// One write of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    pub set: Stored,
    pub step: &'static str,
    /// The item of the step, if it can fail alone.
    pub item: Option<Text>,
    /// The uid of the written object, if it exists.
    pub meant: Option<Text>,
    /// Whether the written object was seen to serve.
    pub has_served: bool,
    pub operation: Operation<Spec, Status>,
}

impl Process {
    pub fn begin(server: &Server) -> Self {
        let mut process = Self::default();
        process.sets.list(server, is_set);
        process.pods.list(server, is_marked_pod);
        process
    }

    /// A successor with an empty memory and the same caches.
    pub fn begin_with_an_old_list(&self) -> Self {
        let mut process = Self { sets: self.sets.clone(), pods: self.pods.clone(), ..Self::default() };
        process.sets.forget_writes();
        process.pods.forget_writes();
        process
    }

    /// A change that the watches have yet to show.
    pub fn hear(&mut self, event: &Event<Spec, Status>) {
        self.sets.hear(event, is_set);
        self.pods.hear(event, is_marked_pod);
    }

    /// Shows the next events of both watches.
    pub fn show(&mut self, sets: usize, pods: usize) {
        self.pods.show(pods);
        if !self.sets.show(sets).is_empty() {
            self.taken.clear();
            self.others.clear();
            self.held.clear();
            (self.rendered, self.told_at) = (None, None);
            self.sets.forget_writes();
            self.pods.forget_writes();
        }
    }

    /// The steps that a pass over the set may take.
    pub fn backoffs(&mut self, set: &Object) -> Backoffs {
        if self.held_for != set.meta.generation {
            self.held.clear();
        }
        let mut held_up = Backoffs::default();
        for ((step, item), is_due) in &self.held {
            held_up = match item {
                None => held_up.and_step(step, failure()),
                Some(item) if *is_due => held_up.and_due(step, item, failure()),
                Some(item) => held_up.and_item(step, item, failure()),
            };
        }
        held_up
    }

    /// A step failed, as a whole or for an item.
    pub fn fails(&mut self, set: &Object, step: &'static str, item: Option<Text>) {
        self.held_for = set.meta.generation;
        self.held.insert((step, item), false);
    }

    /// A write was answered with this version, or whether it took effect before is unknown: decisions wait until its watch
    /// has passed it.
    pub fn awaits(&mut self, kind: Kind, version: Version) {
        let cache = if kind == Kind::Pod { &mut self.pods } else { &mut self.sets };
        cache.wrote(version);
    }

    pub fn status_age(&self, now: u8) -> StatusAge {
        match self.told_at {
            Some(then) => StatusAge::Written(clock::duration(now - then)),
            None => StatusAge::Unwritten(clock::duration(now)),
        }
    }

    /// Backoffs end; failures that were due before are forgotten.
    pub fn retries(&mut self) {
        self.held.retain(|(_, item), is_due| item.is_some() && !std::mem::replace(is_due, true));
    }

    /// The item of a slot, for [`step::CREATE`].
    pub fn place(slot: u32) -> Text {
        slot.to_string().into()
    }

    /// A name belongs to somebody else: its slot is held up.
    pub fn passes_over(&mut self, set: &Object, slot: u32) {
        self.taken.remove(&slot);
        self.fails(set, step::CREATE, Some(Self::place(slot)));
    }
}

fn is_set(object: &Object) -> bool {
    object.meta.key.kind == Kind::ReplicaSet
}

/// The watch of pods is narrowed by a label.
fn is_marked_pod(object: &Object) -> bool {
    object.meta.key.kind == Kind::Pod && object.meta.labels.contains_key(keys::REPLICA_SET_UID)
}
