//! The histories of the chain, and their coming to rest without further faults.

use catena_api::keys::{BACKUP_FINALIZER, BACKUP_STATUS};
use operator_kit::report::Conditions;
use stateright::Property;

use super::{
    content::{BACKUP_MANAGER, Json, Operation, Server, Stored, condition},
    controllers::Controller,
    event::Event,
    people::deployment,
    process::Process,
    rule::{Ledger, Rule, has_ended, is_ready},
    sabotage::Sabotage,
    scope::{Chain, Commands, Scope},
    trace,
    world::World,
};
use crate::{
    harness::{Fate, Histories, Scenario, rules},
    server::{garbage, object::Kind},
};

/// Ticks after which every delay of the controllers has passed.
const DELAYS: u8 = 8;

impl Scenario for Chain {
    type Spec = Json;
    type Status = Json;
    type Process = Process;
    type Ledger = Ledger;
    type Event = Event;
    type Sabotage = Sabotage;

    const ROUNDS: usize = 64;
    const WRITES: u32 = 60;
    const STEPS: usize = 24;

    fn rules(&self) -> Vec<Property<Histories<Self>>> {
        rules!(
            Once, Order, Alone, Waiting, Final, Seen, Own, Meant, Ready, Complete, Bound, Reaped, Proven,
            Budget
        )
    }

    /// A user has just created a `BasicDeployment`.
    fn begin(scope: &Scope) -> World {
        let mut server = Server::default();
        server.apply(Operation::Create(deployment(scope)));
        server.take_news();
        let processes = scope.own.controllers.iter().map(|controller| Process::begin(*controller, &server));
        World {
            processes: processes.collect(),
            server,
            left: scope.budget,
            ledger: Ledger::default(),
            writes: 0,
        }
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

    fn end(world: &World, _: &Scope) -> u8 {
        world.server.clock + DELAYS
    }

    fn round(world: &mut World, scope: &Scope, end: u8) -> bool {
        let writes = world.writes;
        let mut has_acted = world.arrive(scope);
        for at in 0..world.processes.len() {
            has_acted |= world.work(scope, at);
        }
        while let Some(operation) = garbage::work(&world.server).into_iter().next() {
            world.ask(scope, operation);
            has_acted = true;
        }
        for event in world.surroundings(scope) {
            if !matches!(event, Event::Report(_, false) | Event::Follow(_, false)) {
                has_acted |= world.happens(scope, event);
            }
        }
        if scope.own.commands == Commands::Repeated
            && let Some(name) = world.missing_command().filter(|name| *name == "again")
        {
            world.order(scope, Kind::Restart, name);
            has_acted = true;
        }
        if !has_acted {
            world.wait(scope, end);
        }
        world.server.clock < end || world.writes == writes
    }

    fn write(world: &mut World, scope: &Scope, at: usize, fate: Fate) -> bool {
        world.write(scope, at, fate)
    }

    fn pass_over_all(world: &mut World, scope: &Scope, at: usize) -> bool {
        let process = &mut world.processes[at];
        let lags = process.lags();
        process.show(&lags);
        let keys: Vec<_> = process.known().cloned().collect();
        let nothing = vec![0; lags.len()];
        keys.iter().any(|key| world.pass(scope, at, key, &nothing))
    }

    fn is_as_wanted(world: &World, scope: &Scope) -> bool {
        let is_kept = match world.deployment() {
            None => world.children().all(|child| child.meta.controller().is_none()),
            Some(held) if held.meta.is_deleting => world.is_held_for_a_reason(held),
            Some(deployment) => world.is_kept(scope, deployment),
        };
        is_kept && world.commands().all(|command| world.is_settled(scope, command))
    }
}

impl World {
    /// Waits, because nothing else is left to do. The retry belongs to the same round, so that one that fails like the last changes nothing.
    fn wait(&mut self, scope: &Scope, end: u8) {
        if self.server.clock < end {
            self.server.clock += 1;
        }
        if !scope.has(Sabotage::NeverRetries) {
            for at in 0..self.processes.len() {
                self.processes[at].held.clear();
                self.work(scope, at);
            }
        }
    }

    /// Whether somebody else's object has the name of a backup, and the held object says so.
    fn is_held_for_a_reason(&self, held: &Stored) -> bool {
        let is_forged = |backup: &Stored| backup.spec.value()["createdBy"] != BACKUP_MANAGER;
        let said = held.meta.annotations.get(BACKUP_STATUS);
        self.objects(Kind::Backup).any(is_forged) && said.is_some_and(|said| said.contains("Blocked"))
    }

    /// Whether the controllers have done their work on a living `BasicDeployment`.
    fn is_kept(&self, scope: &Scope, deployment: &Stored) -> bool {
        let is_protected =
            !scope.own.runs(Controller::Backups) || deployment.meta.is_held_by(BACKUP_FINALIZER);
        if !scope.own.runs(Controller::Deployments) {
            return is_protected;
        }
        let children: Vec<_> = self.children().collect();
        let is_own = |child: &Stored| child.meta.controller() == Some(&deployment.meta.uid);
        let status = deployment.status.value();
        is_protected
            && children.len() == 1
            && children.iter().all(|child| is_own(child) && is_ready(child, deployment))
            && condition(deployment, Conditions::READY) == "True"
            && status["observedGeneration"].as_i64() == Some(deployment.meta.generation)
            && self.objects(Kind::Revision).any(is_own)
    }

    /// Whether the controllers have done their work on a command.
    fn is_settled(&self, scope: &Scope, command: &Stored) -> bool {
        let Some(target) = self.deployment() else { return command.meta.owners.is_empty() };
        if target.meta.is_deleting {
            // Nothing is carried out on it, and what is bound goes with it.
            return true;
        }
        let is_bound = command.meta.owners.iter().any(|owner| owner.uid == target.meta.uid);
        let is_kept = matches!(scope.own.commands, Commands::Kept | Commands::Declared)
            || !scope.own.runs(Controller::Reaper)
            || self.ledger.reaped.contains(&command.meta.key.name);
        is_bound && has_ended(command) && is_kept
    }
}
