//! The histories of a set, and their coming to rest without further faults.

use std::collections::BTreeSet;

use catena_api::{LastServed, keys};
use stateright::Property;

use super::{
    act::is_ready,
    content::{Object, Phase, Server, Spec, Status, Stored, Told, phase, real_set, set_spec},
    event::{Event, first_set},
    observe::{pod_name, revision_of},
    process::Process,
    rule::{Ledger, Rule, counts_for, is_new, least},
    sabotage::Sabotage,
    scope::{ReplicaSet, Scope},
    trace,
    world::{World, set_key},
};
use crate::{
    harness::{Fate, Histories, Scenario, rules},
    server::{
        garbage,
        object::{Kind, Meta},
        operation::Operation,
    },
};

/// Ticks after which every delay of the controller has passed.
const DELAYS: u8 = 2;

impl Scenario for ReplicaSet {
    type Spec = Spec;
    type Status = Status;
    type Process = Process;
    type Ledger = Ledger;
    type Event = Event;
    type Sabotage = Sabotage;

    const ROUNDS: usize = 24;
    const WRITES: u32 = 40;
    const STEPS: usize = 12;

    fn rules(&self) -> Vec<Property<Histories<Self>>> {
        if self.judges_budget {
            rules!(Own, Meant, Ready, Once, Most, Least)
        } else {
            rules!(Own, Meant, Ready, Once)
        }
    }

    fn begin(scope: &Scope) -> World {
        let mut server = Server::default();
        let mut ledger = Ledger::default();
        ledger.begins(&scope.spec());
        let set = first_set(scope);
        if let Some(set) = server.apply(Operation::Create(set)).object()
            && scope.own.has_squatter
        {
            let name = pod_name(&set.meta.uid, &revision_of(set, &real_set(set)), 0);
            let (meta, spec) = (Meta::new(Kind::Pod, name), Spec::Pod);
            server.apply(Operation::Create(Object { meta, spec, status: Status::None }));
        }
        server.take_news();
        let processes = (0..scope.own.processes).map(|_| Process::begin(&server)).collect();
        ledger.is_doubtful = scope.own.processes > 1;
        World { server, processes, left: scope.budget, ledger, writes: 0 }
    }

    fn events(world: &World, scope: &Scope, events: &mut Vec<Event>) {
        world.add_events(scope, events);
    }

    fn happens(world: &mut World, scope: &Scope, event: Event) -> bool {
        world.happens(scope, event)
    }

    fn line(world: &World, event: &Event) -> String {
        trace::line(world, event)
    }

    fn end(_: &World, scope: &Scope) -> u8 {
        scope.budget.ticks + DELAYS
    }

    fn round(world: &mut World, scope: &Scope, end: u8) -> bool {
        let mut has_acted = false;
        for at in 0..world.processes.len() {
            has_acted |= world.work(scope, at);
        }
        while let Some(operation) = garbage::work(&world.server).into_iter().next() {
            world.ask(operation);
            has_acted = true;
        }
        let pods: Vec<Stored> = world.pods().cloned().collect();
        for pod in pods {
            let key = pod.meta.key.clone();
            if pod.meta.is_deleting {
                world.ask(Operation::end(key));
                has_acted = true;
            } else if phase(&pod).is_none() && scope.can_serve(&pod) {
                world.ask(Operation::report(key, Status::Pod(Phase::Ready(world.server.clock))));
                has_acted = true;
            }
        }
        if !has_acted {
            // Only waiting is left.
            if !scope.has(Sabotage::NeverRetries) {
                world.processes.iter_mut().for_each(Process::retries);
            }
            if world.server.clock < end {
                world.server.clock += 1;
            }
        }
        true
    }

    fn write(world: &mut World, scope: &Scope, at: usize, fate: Fate) -> bool {
        world.write(scope, at, fate)
    }

    fn pass_over_all(world: &mut World, scope: &Scope, at: usize) -> bool {
        let (sets, pods) = (world.processes[at].sets.lag(), world.processes[at].pods.lag());
        world.pass(scope, at, sets, pods)
    }

    fn is_as_wanted(world: &World, scope: &Scope) -> bool {
        let Some(set) = world.server.get(&set_key()) else {
            return world.pods().all(|pod| pod.meta.controller().is_none());
        };
        let revision = revision_of(set, &real_set(set));
        let own: Vec<_> = world.pods().filter(|pod| counts_for(pod, &set.meta.uid)).collect();
        if let Status::Set(Told(told)) = &set.status
            && *revision == *scope.own.never_serves
        {
            // What served before this template serves on, if anything did.
            let still_serves = |served: &LastServed| {
                own.iter().filter(|pod| is_new(pod, &served.revision)).count() >= least_of(set)
            };
            return told.last_served.as_ref().is_none_or(still_serves);
        }
        let slots: BTreeSet<_> = own.iter().map(|pod| pod.meta.annotations.get(keys::SLOT)).collect();
        let is_told = match &set.status {
            Status::Set(Told(told)) => {
                told.observed_generation == Some(set.meta.generation)
                    && usize::try_from(told.active).is_ok_and(|active| active == own.len())
            }
            _ => false,
        };
        set_spec(set).is_some_and(|spec| own.len() == usize::from(spec.replicas))
            && slots.len() == own.len()
            && own.iter().all(|pod| is_new(pod, &revision))
            && is_told
            && is_ready(&set.status)
            && world.pods().all(|pod| !is_left_over(pod, &set.meta.uid))
    }
}

fn least_of(set: &Object) -> usize {
    set_spec(set).map_or(0, |spec| least(spec).into())
}

/// Whether a pod that a set has left behind still has a controller: a pod without one belongs to the user who removed it.
fn is_left_over(pod: &Object, set: &str) -> bool {
    pod.meta.controller().is_some_and(|controller| {
        &**controller != set || pod.meta.is_deleting || phase(pod) == Some(Phase::Failed)
    })
}
