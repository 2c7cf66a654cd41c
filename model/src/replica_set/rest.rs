//! What comes of a world in which nothing more goes wrong: everybody does what there is to do, in turns.

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

/// Rounds until everything has come to rest. A round is a few seconds, or a backoff where nothing else is left to do.
const ROUNDS: usize = 24;
/// Steps of a process in one round, all of which it takes without anybody coming between.
const STEPS: usize = 12;
/// Ticks after which no delay of the controller is under way.
const DELAYS: u8 = 2;
/// Writes until everything has come to rest.
const WRITES: u32 = 40;

/// Why a world does not come to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrest {
    /// There is always something to do.
    NoEnd,
    /// It comes to rest otherwise than wanted.
    Unwanted,
    /// It takes too many writes.
    TooManyWrites,
}

/// Lets a world come to rest.
///
/// # Errors
/// When it does not. `is_known` says that a world is known to come to rest, and `passed` hears of those on the way.
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
    /// A number for what decides on the future.
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

    /// Everybody does what there is to do.
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
        // Nothing is left but to wait.
        if !scope.has(Sabotage::NeverRetries) {
            self.processes.iter_mut().for_each(super::process::Process::retries);
        }
        if self.server.clock < scope.budget.ticks + DELAYS {
            self.server.clock += 1;
        }
    }

    /// A process does what it finds to do. Whether it did anything.
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

    /// Whether there is what was asked for, and it is told.
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

/// Whether a pod that a set has left behind still has a controller: what a user has taken away is the user's.
fn is_left_over(pod: &Object, set: &str) -> bool {
    pod.meta.controller().is_some_and(|controller| {
        &**controller != set || pod.meta.is_deleting || phase(pod) == Some(Phase::Failed)
    })
}
