//! One process of the controller: its caches, what it remembers, and the step that it is about to take.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use basic_replicaset_controller::step;
use catena_api::keys;
use operator_kit::{
    report::{Category, Failure, StatusAge},
    run::{Attempt, HeldUp},
};

use super::content::{self, Object, Server, Spec, Status, Stored};
use crate::{
    cache::Cache,
    server::{
        Event,
        object::{Kind, Text, Version},
        operation::Operation,
    },
};

/// A process.
#[derive(Clone, Debug, Default, Hash)]
pub struct Process {
    /// What its watch of sets has shown.
    pub sets: Cache<Spec, Status>,
    /// What its watch of pods has shown.
    pub pods: Cache<Spec, Status>,
    /// Names that were taken when pods were to be created: name and revision, by place.
    pub taken: BTreeMap<u32, (Text, Text)>,
    /// Pods that look like the set's own and are not, by uid and revision.
    pub others: BTreeSet<(Text, Text)>,
    /// What failed: the step, the item if it was one alone, and whether it may be tried again.
    pub held: BTreeMap<(&'static str, Option<Text>), bool>,
    /// The generation that it failed for.
    pub held_for: i64,
    /// What the first rendering gave.
    pub rendered: Option<Text>,
    /// When the set's status was last written.
    pub told_at: Option<u8>,
    /// The writes of the step that it takes.
    pub plan: VecDeque<Write>,
}

/// One write of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// The set that it is for.
    pub set: Stored,
    /// The step.
    pub step: &'static str,
    /// What the step calls it, if it may fail alone.
    pub item: Option<Text>,
    /// The uid of what is written, if it is there.
    pub meant: Option<Text>,
    /// Whether what is written was seen to serve.
    pub has_served: bool,
    /// The request.
    pub operation: Operation<Spec, Status>,
}

impl Process {
    /// A process that begins.
    #[must_use]
    pub fn begin(server: &Server) -> Self {
        let mut process = Self::default();
        process.sets.list(server, is_set);
        process.pods.list(server, is_marked_pod);
        process
    }

    /// Another one in its place, with nothing in its memory and the caches as they were.
    #[must_use]
    pub fn begin_with_an_old_list(&self) -> Self {
        let mut process = Self { sets: self.sets.clone(), pods: self.pods.clone(), ..Self::default() };
        process.sets.forget_writes();
        process.pods.forget_writes();
        process
    }

    /// Something happened, which its watches are yet to show.
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

    /// What a pass over the set may do.
    pub fn attempt(&mut self, set: &Object) -> Attempt {
        if self.held_for != set.meta.generation {
            self.held.clear();
        }
        let mut held_up = HeldUp::default();
        for ((step, item), is_due) in &self.held {
            held_up = match item {
                None => held_up.and_step(step, failure()),
                Some(item) if *is_due => held_up.and_due(step, item, failure()),
                Some(item) => held_up.and_item(step, item, failure()),
            };
        }
        if self.held.is_empty() { Attempt::Allowed } else { Attempt::Without(held_up) }
    }

    /// A step failed, as a whole or for an item.
    pub fn fails(&mut self, set: &Object, step: &'static str, item: Option<Text>) {
        self.held_for = set.meta.generation;
        self.held.insert((step, item), false);
    }

    /// Nobody knows whether a write was made: decisions wait until its watch has passed this moment.
    pub fn doubts(&mut self, operation: &Operation<Spec, Status>, now: Version) {
        match operation.key().kind {
            Kind::ReplicaSet => self.sets.wrote(now),
            Kind::Pod => self.pods.wrote(now),
        }
    }

    /// How long the set's status has been as it is.
    #[must_use]
    pub fn status_age(&self, now: u8) -> StatusAge {
        match self.told_at {
            Some(then) => StatusAge::Written(content::duration(now - then)),
            None => StatusAge::Unwritten(content::duration(now)),
        }
    }

    /// A step was taken.
    pub fn progresses(&mut self, step: &'static str) {
        self.held.remove(&(step, None));
    }

    /// Backoffs end; what was due before is forgotten.
    pub fn retries(&mut self) {
        self.held.retain(|(_, item), is_due| item.is_some() && !std::mem::replace(is_due, true));
    }

    /// Whether a backoff is under way.
    #[must_use]
    pub fn backs_off(&self) -> bool {
        !self.held.is_empty()
    }

    /// What is meant by a place, to [`step::CREATE`].
    #[must_use]
    pub fn place(slot: u32) -> Option<Text> {
        Some(slot.to_string().into())
    }

    /// It is known what became of a name.
    pub fn name_settled(&mut self, slot: u32) {
        self.taken.remove(&slot);
    }

    /// A name is somebody else's: its place is held up.
    pub fn passes_over(&mut self, set: &Object, slot: u32) {
        self.name_settled(slot);
        self.fails(set, step::CREATE, Self::place(slot));
    }
}

fn failure() -> Failure {
    Failure { category: Category::Transient, reason: "Failed", message: String::new(), is_expected: false }
}

fn is_set(object: &Object) -> bool {
    object.meta.key.kind == Kind::ReplicaSet
}

/// The watch of pods is narrowed by a label.
fn is_marked_pod(object: &Object) -> bool {
    object.meta.key.kind == Kind::Pod && object.meta.labels.contains_key(keys::REPLICA_SET_UID)
}
