//! The transitions of a world.

use std::ops::Deref;

use basic_replicaset_controller::{decide::decide, step};

use super::{
    act::{self, may_write, says_ready},
    content::{Object, Spec, Status, Stored, real_set, set_spec},
    observe::{observe, revision_of},
    process::{Process, Write},
    rule::{Rule, counts_for, is_ending, is_new},
    sabotage::Sabotage,
    scope::{ReplicaSet, Scope},
};
use crate::{
    harness::{self, Fate, digest},
    server::{
        object::{Key, Kind},
        operation::{Answer, Operation},
    },
};

pub type World = harness::World<ReplicaSet>;

/// The only set.
pub fn set_key() -> Key {
    Key { kind: Kind::ReplicaSet, name: "web".into() }
}

impl World {
    pub fn pods(&self) -> impl Iterator<Item = &Stored> {
        self.server.objects().filter(|object| object.meta.key.kind == Kind::Pod)
    }

    /// A request, which all watches notice.
    pub fn ask(&mut self, operation: Operation<Spec, Status>) -> Answer<Spec, Status> {
        let answer = self.server.apply(operation);
        for event in self.server.take_news() {
            self.processes.iter_mut().for_each(|process| process.hear(&event));
        }
        answer
    }

    /// A process sees this number of further events of sets and pods, and decides. Returns whether it changed more than its caches:
    /// if not, it might as well see them later.
    pub fn pass(&mut self, scope: &Scope, at: usize, sets: usize, pods: usize) -> bool {
        let Self { server, processes, ledger, .. } = self;
        let process = &mut processes[at];
        let before = remembered(process);
        process.show(sets, pods);
        let Some(set) = process.sets.get(&set_key()).cloned() else { return false };
        let observed = observe(process, server, scope, &set);
        let action = decide(&observed);
        act::plan(process, server, scope, &set, &observed, action);
        if process.plan.front().is_some_and(says_ready) && !is_ready_as_shown(process, &set) {
            ledger.breaks(Rule::Ready);
        }
        let is_there = || {
            server.get(&set_key()).is_some_and(|live| live.meta.uid == set.meta.uid && !live.meta.is_deleting)
        };
        // The pods of a deleted set belong to others, or to nobody.
        if process.plan.front().is_some_and(|write| write.step == step::ADOPT) && !is_there() {
            ledger.breaks(Rule::Own);
        }
        !process.plan.is_empty() || remembered(process) != before
    }

    /// A process sends its next write. `false` if it has none.
    pub fn write(&mut self, scope: &Scope, at: usize, fate: Fate) -> bool {
        let Some(write) = self.processes[at].plan.pop_front() else { return false };
        self.writes += 1;
        let answer = if fate == Fate::LostBefore { None } else { Some(self.commit(&write)) };
        let process = &mut self.processes[at];
        if let Some(answer) = answer.filter(|_| fate == Fate::Answered) {
            hear_answer(process, &write, &answer, self.server.clock);
        } else {
            process.plan.clear();
            if !scope.has(Sabotage::ForgetsLostAnswers) {
                process.awaits(write.operation.key().kind, self.server.version());
            }
            process.fails(&write.set, write.step, None);
        }
        if scope.has(Sabotage::WaitsForNoWrite) {
            process.sets.forget_writes();
            process.pods.forget_writes();
        }
        true
    }

    /// A write is performed and judged.
    fn commit(&mut self, write: &Write) -> Answer<Spec, Status> {
        let key = write.operation.key().clone();
        let before = self.server.get(&key).cloned();
        let answer = self.ask(write.operation.clone());
        let set = write.set.meta.uid.clone();
        let (now, pods) = (self.server.clock, self.server.objects().map(Deref::deref));
        match (&answer, before) {
            (Answer::Done(_), None) => self.ledger.grows(&set, pods),
            (Answer::Done(_), Some(before)) => {
                if write.meant.as_ref() != Some(&before.meta.uid) {
                    self.ledger.breaks(Rule::Meant);
                }
                if key.kind == Kind::Pod && !may_write(&before, write) {
                    self.ledger.breaks(Rule::Own);
                }
                match write.operation {
                    Operation::Delete { .. } if write.has_served => {
                        self.ledger.shrinks(&set, now, &before, pods);
                    }
                    Operation::Delete { .. } => {}
                    _ => self.ledger.grows(&set, pods),
                }
            }
            (Answer::AlreadyExists, Some(before))
                if before.meta.controller() == Some(&set) && !self.ledger.is_doubtful =>
            {
                self.ledger.breaks(Rule::Once);
            }
            _ => {}
        }
        answer
    }
}

fn hear_answer(process: &mut Process, write: &Write, answer: &Answer<Spec, Status>, now: u8) {
    let is_delete = matches!(write.operation, Operation::Delete { .. });
    match answer {
        Answer::Done(object) => {
            process.awaits(object.meta.key.kind, object.meta.version);
            if write.step == step::STATUS {
                process.told_at = Some(now);
            }
            if let Some(slot) = write.item.as_ref().and_then(|item| item.parse().ok()) {
                process.taken.remove(&slot);
            }
            if process.plan.is_empty() {
                process.held.remove(&(write.step, None));
            }
        }
        Answer::AlreadyExists => {
            if let (Operation::Create(pod), Some(slot)) =
                (&write.operation, write.item.as_ref().and_then(|item| item.parse().ok()))
            {
                let revision = pod.meta.annotations.get(catena_api::keys::HASH).cloned().unwrap_or_default();
                process.taken.insert(slot, (pod.meta.key.name.clone(), revision));
            }
        }
        // An object that is gone need not be deleted.
        Answer::NotFound | Answer::Conflict if is_delete => {}
        Answer::NotFound | Answer::Conflict | Answer::Invalid => {
            process.fails(&write.set, write.step, write.item.clone());
        }
    }
}

/// Whether a set is ready by its caches: counted independently of the controller.
fn is_ready_as_shown(process: &Process, set: &Object) -> bool {
    let revision = revision_of(set, &real_set(set));
    let own: Vec<_> = process.pods.rows().filter(|pod| counts_for(pod, &set.meta.uid)).collect();
    let ends = || process.pods.rows().any(|pod| is_ending(pod, &set.meta.uid));
    own.iter().all(|pod| is_new(pod, &revision))
        && set_spec(set)
            .is_some_and(|spec| own.len() == usize::from(spec.replicas) && !(spec.awaits_ends() && ends()))
}

/// The memory of a process beside its caches.
fn remembered(process: &Process) -> u64 {
    digest(&(&process.taken, &process.others, &process.held, &process.plan, &process.rendered))
}
