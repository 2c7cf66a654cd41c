//! The outcome of a chain without further faults: everybody does their outstanding work, in turns.

use std::hash::{Hash, Hasher};

use catena_api::keys::{BACKUP_FINALIZER, BACKUP_STATUS};
use operator_kit::report::conditions::READY;

use super::{
    content::{BACKUP_MANAGER, Stored, condition},
    controller::Controller,
    event::Event,
    rule::{has_ended, is_ready},
    sabotage::Sabotage,
    scope::{Commands, Scope},
    world::{Fate, World},
};
use crate::{
    harness::Rest,
    server::{garbage, object::Kind},
};

/// Maximum number of uninterrupted steps of a process in one round.
const STEPS: usize = 24;
/// Ticks after which every delay of the controllers has passed.
const DELAYS: u8 = 8;

impl Rest for World {
    type Scope = Scope;

    const ROUNDS: usize = 64;
    const WRITES: u32 = 60;

    fn present<H: Hasher>(&self, state: &mut H) {
        self.processes.hash(state);
        self.server.hash(state);
        self.late.hash(state);
    }

    fn writes(&mut self) -> &mut u32 {
        &mut self.writes
    }

    fn end(&self, _: &Scope) -> u8 {
        self.server.clock + DELAYS
    }

    fn round(&mut self, scope: &Scope, end: u8) -> bool {
        let writes = self.writes;
        let mut has_acted = self.late.is_some();
        self.arrive(scope);
        for at in 0..self.processes.len() {
            has_acted |= self.work(scope, at);
        }
        while let Some(operation) = garbage::work(&self.server).into_iter().next() {
            self.ask(scope, operation);
            has_acted = true;
        }
        for event in self.surroundings(scope) {
            if !matches!(event, Event::Report(_, false)) {
                has_acted |= self.happens(scope, event);
            }
        }
        if scope.commands == Commands::Repeated
            && let Some(name) = self.missing_command().filter(|name| *name == "again")
        {
            self.order(scope, name);
            has_acted = true;
        }
        if !has_acted {
            self.wait(scope, end);
        }
        self.server.clock < end || self.writes == writes
    }

    fn is_as_wanted(&self, scope: &Scope) -> bool {
        let is_kept = match self.deployment() {
            None => self.children().all(|child| child.meta.controller().is_none()),
            Some(held) if held.meta.is_deleting => self.is_held_for_a_reason(held),
            Some(deployment) => self.is_kept(scope, deployment),
        };
        is_kept && self.objects(Kind::Restart).all(|command| self.is_settled(scope, command))
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

    /// A process does its outstanding work. Returns whether there was any.
    fn work(&mut self, scope: &Scope, at: usize) -> bool {
        let before = self.fingerprint();
        for _ in 0..STEPS {
            while !self.processes[at].plan.is_empty() {
                self.write(scope, at, Fate::Answered);
            }
            let lags = self.processes[at].lags();
            self.processes[at].show(&lags);
            let kind = self.processes[at].controller.reconciles();
            let keys: Vec<_> =
                self.processes[at].cache(kind).rows().map(|row| row.meta.key.clone()).collect();
            let nothing = vec![0; lags.len()];
            if !keys.iter().any(|key| self.pass(scope, at, key, &nothing)) {
                break;
            }
        }
        self.fingerprint() != before
    }

    /// Whether somebody else's object has the name of a backup, and the held object says so.
    fn is_held_for_a_reason(&self, held: &Stored) -> bool {
        let is_forged = |backup: &Stored| backup.spec.value()["createdBy"] != BACKUP_MANAGER;
        let said = held.meta.annotations.get(BACKUP_STATUS);
        self.objects(Kind::Backup).any(is_forged) && said.is_some_and(|said| said.contains("Blocked"))
    }

    /// Whether the controllers have done their work on a living `BasicDeployment`.
    fn is_kept(&self, scope: &Scope, deployment: &Stored) -> bool {
        let is_protected = !scope.runs(Controller::Backups) || deployment.meta.is_held_by(BACKUP_FINALIZER);
        if !scope.runs(Controller::Deployments) {
            return is_protected;
        }
        let children: Vec<_> = self.children().collect();
        let is_own = |child: &Stored| child.meta.controller() == Some(&deployment.meta.uid);
        let status = deployment.status.value();
        is_protected
            && children.len() == 1
            && children.iter().all(|child| is_own(child) && is_ready(child, deployment))
            && condition(deployment, READY) == "True"
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
        let is_kept = matches!(scope.commands, Commands::Kept | Commands::Declared)
            || !scope.runs(Controller::Reaper)
            || self.ledger.has_reaped(command);
        is_bound && has_ended(command) && is_kept
    }
}
