//! The chain: the `decide` of four controllers, around a child that keeps the replica contract.
//!
//! basic-deployment-controller, command-binder, command-reaper and backup-controller act on one `BasicDeployment`. Its
//! child is any one that keeps the contract: it reports on its present spec at any time, first that it rolls out, then
//! that it serves. The model of basic-replicaset-controller shows that a `BasicReplicaSet` is such a child.

pub mod content;
pub mod controller;
pub mod controllers;
pub mod digest;
pub mod event;
pub mod memory;
pub mod people;
pub mod process;
pub mod rest;
pub mod rule;
pub mod sabotage;
pub mod scope;
pub mod scopes;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod walk;
pub mod world;
pub mod write;

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;
use stateright::{Model, Property};

use content::{Operation, Server};
use event::Event;
use people::deployment;
use process::Process;
use rule::{Ledger, Rule};
use scope::Scope;
use world::World;

use crate::check::Checkable;

/// A model of the chain.
pub struct Chain {
    /// Its size.
    pub scope: Scope,
    /// Worlds that are known to come to rest.
    known: Arc<Mutex<HashSet<u64>>>,
}

impl Chain {
    /// The model of this scope.
    #[must_use]
    pub fn new(scope: Scope) -> Self {
        Self { scope, known: Arc::default() }
    }

    /// The world in which a user has just created a `BasicDeployment`.
    #[must_use]
    pub fn begin(&self) -> World {
        let mut server = Server::default();
        server.apply(Operation::Create(deployment(&self.scope)));
        server.take_news();
        let processes = self.scope.controllers.iter().map(|controller| Process::begin(*controller, &server));
        World {
            processes: processes.collect(),
            server,
            left: self.scope.budget,
            ledger: Ledger::default(),
            late: None,
            writes: 0,
        }
    }

    /// Whether a world without further faults comes to rest in the desired state.
    #[must_use]
    pub fn comes_to_rest(&self, world: &World) -> bool {
        let is_known = |here| self.known.lock().contains(&here);
        let passed = |worlds| self.known.lock().extend::<Vec<u64>>(worlds);
        rest::rest(world.clone(), &self.scope, is_known, passed).is_ok()
    }
}

impl Model for Chain {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![self.begin()]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        world.events(&self.scope, events);
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        let mut world = world.clone();
        world.happens(&self.scope, event).then_some(world)
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.server.created() <= self.scope.objects
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! never_broken {
            ($($rule:ident),*) => {
                vec![$(Property::always(Rule::$rule.sentence(), |_, world: &World| {
                    !world.ledger.has_broken(Rule::$rule)
                }),)*]
            };
        }
        let mut rules =
            never_broken!(Once, Waiting, Own, Meant, Ready, Complete, Bound, Reaped, Proven, Budget);
        rules.push(Property::always(Rule::Rest.sentence(), |model: &Self, world| model.comes_to_rest(world)));
        rules
    }
}

impl Checkable for Chain {
    fn name(&self) -> &'static str {
        self.scope.name
    }

    fn lines(history: Vec<(World, Option<Event>)>) -> Vec<String> {
        trace::lines(history)
    }
}
