//! The outcome of a world without further faults: everybody does their outstanding work, in turns.

use std::collections::BTreeSet;

use super::{
    act::is_ready,
    content::{Object, Phase, Status, Told, phase, real_set, set_spec},
    event::{delete, reports},
    observe::revision_of,
    rule::counts_for,
    sabotage::Sabotage,
    scope::Scope,
    world::{Fate, World, digest, set_key},
};
use crate::server::{garbage, object::Kind};

/// Maximum number of rounds until everything has come to rest. A round is a few seconds, or a backoff if nothing else is left to do.
const ROUNDS: usize = 24;
/// Maximum number of uninterrupted steps of a process in one round.
const STEPS: usize = 12;
/// Ticks after which every delay of the controller has passed.
const DELAYS: u8 = 2;
/// Maximum number of writes until everything has come to rest.
const WRITES: u32 = 40;

/// The reason why a world does not come to rest as desired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrest {
    /// Work is never finished.
    NoEnd,
    /// It comes to rest in another state than the desired one.
    Unwanted,
    /// It takes too many writes.
    TooManyWrites,
}

/// Lets a world come to rest.
///
/// # Errors
/// When it does not. `is_known` tells whether a world is known to come to rest, and `passed` is called with those on the way.
pub fn rest(
    mut world: World,
    scope: &Scope,
    is_known: impl Fn(u64) -> bool,
    passed: impl FnOnce(Vec<u64>),
) -> Result<(), Unrest> {
    let mut on_the_way = Vec::new();
    world.writes.0 = 0;
    for _ in 0..ROUNDS {
        let here = world.fingerprint();
        if is_known(here) {
            passed(on_the_way);
            return Ok(());
        }
        on_the_way.push(here);
        world.round(scope);
        if world.writes.0 > WRITES {
            return Err(Unrest::TooManyWrites);
        }
        if world.fingerprint() == here {
            if !world.is_as_wanted() {
                return Err(Unrest::Unwanted);
            }
            passed(on_the_way);
            return Ok(());
        }
    }
    Err(Unrest::NoEnd)
}

impl World {
    /// A hash of everything that determines the future.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        struct Present<'w>(&'w World);
        impl std::hash::Hash for Present<'_> {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.0.present(state);
            }
        }
        digest(&Present(self))
    }

    /// Everybody does their outstanding work.
    fn round(&mut self, scope: &Scope) {
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
        if has_acted {
            return;
        }
        // Only waiting is left.
        if !scope.has(Sabotage::NeverRetries) {
            self.processes.iter_mut().for_each(super::process::Process::retries);
        }
        if self.server.clock < scope.budget.ticks + DELAYS {
            self.server.clock += 1;
        }
    }

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

    /// Whether the desired state exists and is reported.
    fn is_as_wanted(&self) -> bool {
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

/// Whether a pod that a set has left behind still has a controller: a pod without one belongs to the user who removed it.
fn is_left_over(pod: &Object, set: &str) -> bool {
    pod.meta.controller().is_some_and(|controller| {
        &**controller != set || pod.meta.is_deleting || phase(pod) == Some(Phase::Failed)
    })
}
