//! The possible next events of the chain.

use std::collections::BTreeSet;

use catena_api::{command::SUCCEEDED, keys};
use serde_json::json;

use super::{
    content::{NAME, Operation, Stored, condition, desire, ended, serves},
    controllers::Controller,
    people::Deed,
    process::Process,
    revision::{has_spent_pin, wanted_revision},
    sabotage::Sabotage,
    scope::Scope,
    world::World,
    write::Purpose,
};
use crate::{
    clock,
    harness::Fate,
    server::{
        garbage,
        object::{Key, Kind, Text},
        operation::{Change, Preconditions},
    },
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A process sees these numbers of further events of its watches, and makes a pass over an object.
    Pass(usize, Key, Vec<usize>),
    /// A process sends the next write of its present step.
    Write(usize, Fate),
    /// The backoff of an object ends.
    Retry(usize, Text),
    /// A process ends, and another one starts.
    Crash(usize),
    /// A process ends in the middle of a write, which arrives later, and another one starts.
    LeaveBehind(usize),
    /// The late write arrives.
    Arrive,
    /// The garbage collector makes one request.
    Collect(Operation),
    /// A child reports on its present spec: whether all its replicas serve.
    Report(Key, bool),
    /// A `BasicDeployment` without its controller reports on its present spec: whether it is ready.
    Follow(Key, bool),
    /// A backup ends: whether it succeeded.
    BackUp(Key, bool),
    /// A command is bound, without command-binder.
    Bind(Key),
    /// A command finishes.
    Finish(Key),
    /// A person acts.
    Person(Deed),
    /// Time passes.
    Tick,
}

impl World {
    /// All events that are possible now.
    pub fn add_events(&self, scope: &Scope, events: &mut Vec<Event>) {
        for (at, process) in self.processes.iter().enumerate() {
            self.events_of(scope, at, process, events);
        }
        events.extend(garbage::work(&self.server).into_iter().map(Event::Collect));
        events.extend(self.surroundings(scope));
        if self.left.failures > 0 {
            let running = self.objects(Kind::Backup).filter(|backup| backup.status.value().is_null());
            events.extend(running.map(|backup| Event::BackUp(backup.meta.key.clone(), false)));
        }
        events.extend(self.deeds(scope).into_iter().map(Event::Person));
        if self.has_late_write() {
            events.push(Event::Arrive);
        }
        if self.left.ticks > 0 {
            events.push(Event::Tick);
        }
    }

    /// The work of other controllers that is left to do.
    pub fn surroundings(&self, scope: &Scope) -> Vec<Event> {
        let mut events = Vec::new();
        for child in self.children().filter(|child| !child.meta.is_deleting) {
            let reported = child.status.value()["observedGeneration"].as_i64();
            if reported != Some(child.meta.generation) && desire(child).0 > 0 {
                events.push(Event::Report(child.meta.key.clone(), false));
            }
            if !serves(child) {
                events.push(Event::Report(child.meta.key.clone(), true));
            }
        }
        if scope.own.runs(Controller::Runner)
            && !scope.own.runs(Controller::Deployments)
            && let Some(deployment) = self.deployment()
        {
            let status = deployment.status.value();
            let is_current = status["observedGeneration"].as_i64() == Some(deployment.meta.generation)
                && status["child"]["hash"] == *wanted_revision(deployment)
                && !has_spent_pin(deployment);
            let follow = |is_ready| Event::Follow(deployment.meta.key.clone(), is_ready);
            events.extend((!is_current).then(|| follow(false)));
            events.extend((!is_current || status["ready"] != true).then(|| follow(true)));
        }
        for backup in self.objects(Kind::Backup).filter(|backup| backup.status.value().is_null()) {
            events.push(Event::BackUp(backup.meta.key.clone(), true));
        }
        if scope.own.binds_late && self.deployment().is_some() {
            let free = self.commands().filter(|command| command.meta.owners.is_empty());
            events.extend(free.map(|command| Event::Bind(command.meta.key.clone())));
        }
        if !scope.own.runs(Controller::Runner) {
            let is_bound =
                |command: &Stored| !scope.own.runs(Controller::Binder) || !command.meta.owners.is_empty();
            let is_open = |command: &&Stored| condition(command, SUCCEEDED).is_empty() && is_bound(command);
            let open = self.objects(Kind::Restart).filter(is_open);
            events.extend(open.map(|command| Event::Finish(command.meta.key.clone())));
        }
        events
    }

    fn events_of(&self, scope: &Scope, at: usize, process: &Process, events: &mut Vec<Event>) {
        if let Some(write) = process.plan.front() {
            events.push(Event::Write(at, Fate::Answered));
            if self.left.lost_answers > 0 {
                events.extend([Fate::LostBefore, Fate::LostAfter].map(|fate| Event::Write(at, fate)));
            }
            if self.left.late_writes > 0 && !self.has_late_write() {
                events.push(Event::LeaveBehind(at));
            }
            if self.left.refusals > 0 && write.purpose == Purpose::BackUp {
                events.push(Event::Write(at, Fate::Refused));
            }
        } else {
            let kinds = process.controller.reconciles().iter();
            let live = kinds.flat_map(|kind| self.objects(*kind)).map(|object| &object.meta.key);
            let known: BTreeSet<_> = process.known().chain(live).collect();
            for counts in up_to(&process.lags()) {
                if process.is_current_after(&counts) {
                    let pass = |key: &&Key| Event::Pass(at, Key::clone(key), counts.clone());
                    events.extend(known.iter().map(pass));
                }
            }
            if !scope.has(Sabotage::NeverRetries) {
                events.extend(process.held.keys().map(|uid| Event::Retry(at, uid.clone())));
            }
        }
        if self.left.crashes > 0 {
            events.push(Event::Crash(at));
        }
    }

    /// Performs the event. `false` if the state stays the same.
    pub fn happens(&mut self, scope: &Scope, event: Event) -> bool {
        match event {
            Event::Pass(at, key, counts) => return self.pass(scope, at, &key, &counts),
            Event::Write(at, fate) => {
                match fate {
                    Fate::Answered => {}
                    Fate::LostBefore | Fate::LostAfter => self.left.lost_answers -= 1,
                    Fate::Refused => self.left.refusals -= 1,
                }
                self.write(scope, at, fate);
            }
            Event::Retry(at, uid) => drop(self.processes[at].held.remove(&uid)),
            Event::Crash(at) => {
                self.left.crashes -= 1;
                self.restart(at);
            }
            Event::LeaveBehind(at) => {
                self.left.late_writes -= 1;
                self.leave_behind(at);
            }
            Event::Arrive => {
                self.arrive(scope);
            }
            Event::Collect(operation) => drop(self.ask(scope, operation)),
            Event::Report(key, is_serving) => self.report(scope, key, is_serving),
            Event::Follow(key, is_ready) => self.follow(scope, key, is_ready),
            Event::BackUp(key, is_success) => {
                if !is_success {
                    self.left.failures -= 1;
                }
                self.end_backup(scope, key, is_success);
            }
            Event::Bind(key) => self.bind(scope, key),
            Event::Finish(key) => self.finish(scope, key),
            Event::Person(deed) => self.act(scope, deed),
            Event::Tick => {
                self.left.ticks -= 1;
                self.server.clock += 1;
            }
        }
        true
    }

    /// An honest child reports on its present spec.
    fn report(&mut self, scope: &Scope, key: Key, is_serving: bool) {
        let Some(child) = self.server.get(&key) else { return };
        let (replicas, generation) = (desire(child).0, child.meta.generation);
        let (active, updated) = if is_serving { (replicas, replicas) } else { (replicas - 1, 0) };
        let status = json!({
            "active": active, "updated": updated, "replicas": replicas, "observedGeneration": generation,
            "selector": "a=b",
            "conditions": [{
                "type": "Ready", "status": if is_serving { "True" } else { "False" },
                "reason": if is_serving { "Complete" } else { "Rolling" }, "message": "",
                "observedGeneration": generation, "lastTransitionTime": clock::time(self.server.clock),
            }],
        });
        self.ask(scope, Operation::report(key, status.into()));
    }

    /// An honest `BasicDeployment` records the revision that it is to have, and reports on it and on its present spec.
    fn follow(&mut self, scope: &Scope, key: Key, is_ready: bool) {
        if self.server.get(&key).is_some_and(has_spent_pin) {
            let unpin = Change::Annotation(keys::PINNED_REVISION.into(), None);
            self.ask(scope, Operation::merge(key.clone(), Preconditions::default(), vec![unpin]));
        }
        let Some(deployment) = self.server.get(&key) else { return };
        let (replicas, generation) = (desire(deployment).0, deployment.meta.generation);
        let wanted = wanted_revision(deployment);
        let mut revisions = deployment.status.value()["revisions"].as_array().cloned().unwrap_or_default();
        let last = revisions.last().map_or(0, |last| last["number"].as_i64().unwrap_or_default());
        if revisions.last().is_none_or(|last| last["hash"] != *wanted) {
            revisions.retain(|revision| revision["hash"] != *wanted);
            let at = clock::time(self.server.clock);
            revisions.push(json!({"number": last + 1, "hash": &*wanted, "at": at}));
        }
        let status = json!({
            "observedGeneration": generation, "ready": is_ready, "active": replicas,
            "updated": if is_ready { replicas } else { 0 }, "conditions": [], "revisions": revisions,
            "child": {"apiVersion": "", "kind": "", "name": NAME, "uid": "", "hash": &*wanted},
        });
        self.ask(scope, Operation::report(key, status.into()));
    }

    fn end_backup(&mut self, scope: &Scope, key: Key, is_success: bool) {
        let Some(backup) = self.server.get(&key).cloned() else { return };
        self.ledger.ends(&backup, is_success);
        self.ask(scope, Operation::report(key, ended(is_success)));
    }

    /// A command finishes without its own controller.
    fn finish(&mut self, scope: &Scope, key: Key) {
        let Some(command) = self.server.get(&key) else { return };
        let now = clock::time(self.server.clock);
        let mut status = command.status.value().clone();
        status["completionTime"] = json!(now);
        let condition = json!({
            "type": SUCCEEDED, "status": "True", "reason": "Complete", "message": "", "lastTransitionTime": now,
        });
        match status["conditions"].as_array_mut() {
            Some(conditions) => conditions.push(condition),
            None => status["conditions"] = json!([condition]),
        }
        self.ask(scope, Operation::report(key, status.into()));
    }
}

/// All combinations of numbers up to these.
fn up_to(most: &[usize]) -> Vec<Vec<usize>> {
    most.iter().fold(vec![Vec::new()], |combinations, most| {
        let with = |counts: &Vec<usize>, count| [counts.as_slice(), &[count]].concat();
        combinations.iter().flat_map(|counts| (0..=*most).map(move |count| with(counts, count))).collect()
    })
}
