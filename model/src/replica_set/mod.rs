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

use stateright::Property;

use content::{Object, Spec, Status};
use event::{Event, first_set};
use observe::{pod_name, revision_of};
use process::Process;
use rule::{Ledger, Rule};
use scope::Scope;
use world::World;

use crate::{
    harness::{Histories, Scenario, rules},
    server::{
        Server,
        object::{Kind, Meta},
        operation::Operation,
    },
};

/// A model of one set.
pub type ReplicaSet = Histories<World>;

impl Scenario for World {
    type Event = Event;

    fn name(scope: &Scope) -> &'static str {
        scope.name
    }

    fn rules(scope: &Scope) -> Vec<Property<ReplicaSet>> {
        if scope.judges_budget {
            rules!(Own, Meant, Ready, Once, Most, Least)
        } else {
            rules!(Own, Meant, Ready, Once)
        }
    }

    fn begin(scope: &Scope) -> Self {
        let mut server = Server::default();
        let mut ledger = Ledger::default();
        ledger.begins(&scope.spec());
        let set = first_set(scope);
        if let Some(set) = server.apply(Operation::Create(set)).object()
            && scope.has_squatter
        {
            let name = pod_name(&set.meta.uid, &revision_of(set, &content::real_set(set)), 0);
            let meta = Meta::new(Kind::Pod, name);
            server.apply(Operation::Create(Object { meta, spec: Spec::Pod, status: Status::None }));
        }
        server.take_news();
        let processes = (0..scope.processes).map(|_| Process::begin(&server)).collect();
        ledger.is_doubtful = scope.processes > 1;
        Self { server, processes, left: scope.budget, ledger, writes: 0 }
    }

    /// Both watches of one process may lag so far that pods of a deleted set are created, collected and
    /// created again without end.
    fn is_followed(&self, scope: &Scope) -> bool {
        self.server.created() <= scope.objects
    }

    fn add_events(&self, scope: &Scope, events: &mut Vec<Event>) {
        self.events(scope, events);
    }

    fn perform(&mut self, scope: &Scope, event: Event) -> bool {
        self.happens(scope, event)
    }

    fn line(&self, event: &Event) -> String {
        trace::line(self, event)
    }
}
