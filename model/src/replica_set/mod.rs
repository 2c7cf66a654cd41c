//! `BasicReplicaSet` alone: its controller's own `decide` and `status`, over all orders of events.

pub mod act;
pub mod content;
pub mod event;
pub mod observe;
pub mod process;
pub mod rest;
pub mod rule;
pub mod sabotage;
pub mod scope;
pub mod scopes;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod world;

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;
use stateright::{Model, Property};

use content::{Object, Spec, Status};
use event::{Event, first_set};
use observe::{pod_name, revision_of};
use process::Process;
use rule::{Ledger, Rule};
use scope::Scope;
use world::{World, Writes};

use crate::{
    check::Checkable,
    server::{
        Server,
        object::{Kind, Meta},
        operation::Operation,
    },
};

/// A model of one set.
pub struct ReplicaSet {
    /// Its size.
    pub scope: Scope,
    /// Worlds that are known to come to rest.
    known: Arc<Mutex<HashSet<u64>>>,
}

impl ReplicaSet {
    /// The model of this scope.
    #[must_use]
    pub fn new(scope: Scope) -> Self {
        Self { scope, known: Arc::default() }
    }

    fn comes_to_rest(&self, world: &World) -> bool {
        let is_known = |here| self.known.lock().contains(&here);
        let passed = |worlds| self.known.lock().extend::<Vec<u64>>(worlds);
        rest::rest(world.clone(), &self.scope, is_known, passed).is_ok()
    }
}

impl Model for ReplicaSet {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        let mut server = Server::default();
        let mut ledger = Ledger::default();
        ledger.begins(&self.scope.spec());
        let set = first_set(&self.scope);
        if let Some(set) = server.apply(Operation::Create(set)).object()
            && self.scope.has_squatter
        {
            let name = pod_name(&set.meta.uid, &revision_of(set, &content::real_set(set)), 0);
            let meta = Meta::new(Kind::Pod, name);
            server.apply(Operation::Create(Object {
                meta,
                spec: Spec::Pod("x".into()),
                status: Status::None,
            }));
        }
        server.take_news();
        let processes = (0..self.scope.processes).map(|_| Process::begin(&server)).collect();
        ledger.is_doubtful = self.scope.processes > 1;
        vec![World { server, processes, left: self.scope.budget, ledger, writes: Writes::default() }]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        world.events(&self.scope, events);
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        let mut world = world.clone();
        world.happens(&self.scope, event).then_some(world)
    }

    /// Both watches of one process may lag so far that pods of a deleted set are created, collected and
    /// created again without end: a history with too many objects is not followed.
    fn within_boundary(&self, world: &World) -> bool {
        world.server.created() <= self.scope.objects
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut rules = vec![
            Property::always(Rule::Own.sentence(), |_, world: &World| !world.ledger.has_broken(Rule::Own)),
            Property::always(Rule::Meant.sentence(), |_, world: &World| {
                !world.ledger.has_broken(Rule::Meant)
            }),
            Property::always(Rule::Ready.sentence(), |_, world: &World| {
                !world.ledger.has_broken(Rule::Ready)
            }),
            Property::always(Rule::Once.sentence(), |_, world: &World| !world.ledger.has_broken(Rule::Once)),
            Property::always(Rule::Rest.sentence(), |model: &Self, world| model.comes_to_rest(world)),
        ];
        if self.scope.judges_budget {
            rules.extend([
                Property::always(Rule::Most.sentence(), |_, world: &World| {
                    !world.ledger.has_broken(Rule::Most)
                }),
                Property::always(Rule::Least.sentence(), |_, world: &World| {
                    !world.ledger.has_broken(Rule::Least)
                }),
            ]);
        }
        rules
    }
}

impl Checkable for ReplicaSet {
    fn name(&self) -> &'static str {
        self.scope.name
    }

    fn lines(history: Vec<(World, Option<Event>)>) -> Vec<String> {
        trace::lines(history)
    }
}
