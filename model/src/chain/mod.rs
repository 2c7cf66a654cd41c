//! The chain: the `decide` of four controllers, around a child that keeps the replica contract.
//!
//! basic-deployment-controller, command-binder, command-reaper and backup-controller act on one `BasicDeployment`. Its
//! child is any one that keeps the contract: it reports on its present spec at any time, first that it rolls out, then
//! that it serves. The model of basic-replicaset-controller shows that a `BasicReplicaSet` is such a child.

pub mod content;
pub mod controller;
pub mod controllers;
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

use stateright::Property;

use content::{Operation, Server};
use event::Event;
use people::deployment;
use process::Process;
use rule::{Ledger, Rule};
use scope::Scope;
use world::World;

use crate::harness::{Histories, Scenario, rules};

/// A model of the chain.
pub type Chain = Histories<World>;

impl Scenario for World {
    type Event = Event;

    fn name(scope: &Scope) -> &'static str {
        scope.name
    }

    fn rules(_: &Scope) -> Vec<Property<Chain>> {
        rules!(Once, Waiting, Own, Meant, Ready, Complete, Bound, Reaped, Proven, Budget)
    }

    /// A user has just created a `BasicDeployment`.
    fn begin(scope: &Scope) -> Self {
        let mut server = Server::default();
        server.apply(Operation::Create(deployment(scope)));
        server.take_news();
        let processes = scope.controllers.iter().map(|controller| Process::begin(*controller, &server));
        Self {
            processes: processes.collect(),
            server,
            left: scope.budget,
            ledger: Ledger::default(),
            late: None,
            writes: 0,
        }
    }

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
