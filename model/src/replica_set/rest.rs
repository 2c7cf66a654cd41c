//! The outcome of a world without further faults: everybody does their outstanding work, in turns.

use std::{
    collections::BTreeSet,
    hash::{Hash, Hasher},
};

use super::{
    act::is_ready,
    content::{Object, Phase, Status, Told, phase, real_set, set_spec},
    event::{delete, reports},
    observe::revision_of,
    process::Process,
    rule::counts_for,
    sabotage::Sabotage,
    scope::Scope,
    world::{Fate, World, set_key},
};
use crate::{
    harness::{Rest, digest},
    server::{garbage, object::Kind},
};

/// Maximum number of uninterrupted steps of a process in one round.
const STEPS: usize = 12;
/// Ticks after which every delay of the controller has passed.
const DELAYS: u8 = 2;

impl Rest for World {
    type Scope = Scope;

    const ROUNDS: usize = 24;
    const WRITES: u32 = 40;

    /// Processes are interchangeable: their order makes no other state.
    fn present<H: Hasher>(&self, state: &mut H) {
        let mut processes: Vec<u64> = self.processes.iter().map(digest).collect();
        processes.sort_unstable();
        processes.hash(state);
        self.server.hash(state);
    }

    fn writes(&mut self) -> &mut u32 {
        &mut self.writes
    }

    fn end(&self, scope: &Scope) -> u8 {
        scope.budget.ticks + DELAYS
    }

    fn round(&mut self, scope: &Scope, end: u8) -> bool {
        let mut has_acted = false;
        for at in 0..self.processes.len() {
            has_acted |= self.work(scope, at);
        }
        while let Some(operation) = garbage::work(&self.server).into_iter().next() {
            self.ask(operation);
            has_acted = true;
        }
        let pods: Vec<_> =
            self.server.objects().filter(|object| object.meta.key.kind == Kind::Pod).cloned().collect();
        for pod in pods {
            let key = pod.meta.key.clone();
            if pod.meta.is_deleting {
                self.ask(delete(key, true));
                has_acted = true;
            } else if phase(&pod).is_none() {
                self.ask(reports(key, Phase::Ready));
                has_acted = true;
            }
        }
        if !has_acted {
            // Only waiting is left.
            if !scope.has(Sabotage::NeverRetries) {
                self.processes.iter_mut().for_each(Process::retries);
            }
            if self.server.clock < end {
                self.server.clock += 1;
            }
        }
        true
    }

    fn is_as_wanted(&self, _: &Scope) -> bool {
        let pods = || self.server.objects().filter(|object| object.meta.key.kind == Kind::Pod);
        let Some(set) = self.server.get(&set_key()) else {
            return pods().all(|pod| pod.meta.controller().is_none());
        };
        let revision = revision_of(set, &real_set(set));
        let own: Vec<_> = pods().filter(|pod| counts_for(pod, &set.meta.uid)).collect();
        let is_new = |pod: &Object| {
            pod.meta.annotations.get(catena_api::keys::HASH).is_some_and(|hash| **hash == *revision)
                && phase(pod) == Some(Phase::Ready)
        };
        let slots: BTreeSet<_> =
            own.iter().map(|pod| pod.meta.annotations.get(catena_api::keys::SLOT)).collect();
        let is_told = match &set.status {
            Status::Set(Told(told)) => {
                told.observed_generation == Some(set.meta.generation)
                    && usize::try_from(told.active).is_ok_and(|active| active == own.len())
            }
            _ => false,
        };
        set_spec(set).is_some_and(|spec| own.len() == usize::from(spec.replicas))
            && slots.len() == own.len()
            && own.iter().all(|pod| is_new(pod))
            && is_told
            && is_ready(&set.status)
            && pods().all(|pod| !is_left_over(pod, &set.meta.uid))
    }
}

impl World {
    /// A process does its outstanding work. Returns whether there was any.
    fn work(&mut self, scope: &Scope, at: usize) -> bool {
        let before = self.fingerprint();
        for _ in 0..STEPS {
            while !self.processes[at].plan.is_empty() {
                self.write(scope, at, Fate::Answered);
            }
            let (sets, pods) = (self.processes[at].sets.lag(), self.processes[at].pods.lag());
            if !self.pass(scope, at, sets, pods) {
                break;
            }
        }
        self.fingerprint() != before
    }
}

/// Whether a pod that a set has left behind still has a controller: a pod without one belongs to the user who removed it.
fn is_left_over(pod: &Object, set: &str) -> bool {
    pod.meta.controller().is_some_and(|controller| {
        &**controller != set || pod.meta.is_deleting || phase(pod) == Some(Phase::Failed)
    })
}
