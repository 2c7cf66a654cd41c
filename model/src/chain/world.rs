//! The transitions of a world: those of its controllers.

use super::{
    content::{Answer, CHILDREN, NAME, Operation, Stored},
    controllers::{self, Controller},
    process::Process,
    rule::{self, Rule},
    scope::{Chain, Scope},
    write::{Purpose, Write},
};
use crate::{
    harness::{self, Fate, digest},
    server::object::{Key, Kind},
};

pub type World = harness::World<Chain>;

/// The only `BasicDeployment`.
pub fn deployment_key() -> Key {
    Key { kind: Kind::Deployment, name: NAME.into() }
}

impl World {
    /// A request, which all watches notice.
    pub fn ask(&mut self, scope: &Scope, operation: Operation) -> Answer {
        let before = self.server.get(operation.key()).cloned();
        let answer = self.server.apply(operation);
        for event in self.server.take_news() {
            if let Some(before) = before.as_ref().filter(|_| event.is_deletion) {
                self.ledger.loses(before, &self.server, scope);
            }
            self.processes.iter_mut().for_each(|process| process.hear(&event));
        }
        answer
    }

    /// A process sees these numbers of further events, and decides about an object. Returns whether it changed more
    /// than its caches: if not, it might as well see them later.
    pub fn pass(&mut self, scope: &Scope, at: usize, key: &Key, counts: &[usize]) -> bool {
        let Self { server, processes, ledger, .. } = self;
        let process = &mut processes[at];
        let before = remembered(process);
        process.show(counts);
        let controller = process.controller;
        let Some(object) = process.cache(controller.reconciles()).get(key).cloned() else { return false };
        let writes = controllers::pass(process, server, scope, &object);
        ledger.decides(process, server, &object, &writes);
        process.plan = writes.into();
        !process.plan.is_empty() || remembered(process) != before
    }

    /// A process sends its next write. `false` if it has none.
    pub fn write(&mut self, scope: &Scope, at: usize, fate: Fate) -> bool {
        let Some(write) = self.processes[at].plan.pop_front() else { return false };
        self.writes += 1;
        if write.purpose == Purpose::Reap {
            self.ledger.reaped.insert(write.whose.meta.key.name.clone());
        }
        let answer = match fate {
            Fate::LostBefore => None,
            Fate::Refused => {
                *self.ledger.tries.entry(write.whose.meta.uid.clone()).or_default() += 1;
                Some(Answer::Invalid)
            }
            Fate::Answered => Some(self.commit(scope, self.processes[at].controller, &write)),
            Fate::LostAfter => {
                self.commit(scope, self.processes[at].controller, &write);
                None
            }
        };
        let Self { server, processes, .. } = self;
        let process = &mut processes[at];
        let has_failed = if let Some(answer) = &answer {
            if let Some(object) = answer.object() {
                process.awaits(&object.meta.key, object.meta.version);
            }
            controllers::hears(process, &write, answer, server.clock)
        } else {
            process.awaits(write.operation.key(), server.version());
            true
        };
        if has_failed {
            process.fails(&write.whose, write.step, write.item.clone());
            if write.item.is_none() {
                process.plan.clear();
            }
        }
        true
    }

    /// A write is performed and judged.
    fn commit(&mut self, scope: &Scope, controller: Controller, write: &Write) -> Answer {
        let before = self.server.get(write.operation.key()).cloned();
        let own = &write.whose.meta.uid;
        let desired = rule::desired_of_all(&self.server, own);
        let answer = self.ask(scope, write.merged_with(before.as_ref()));
        if controller == Controller::Deployments {
            let (now, most) = (rule::desired_of_all(&self.server, own), rule::budget(&write.whose).most);
            if now > desired.max(most) {
                self.ledger.breaks(Rule::Budget);
            }
        }
        if let Answer::Done(after) = &answer {
            self.ledger.changes(controller, write, before.as_ref(), after);
        }
        answer
    }

    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = &Stored> {
        self.server.objects().filter(move |object| object.meta.key.kind == kind)
    }

    /// The children of all kinds.
    pub fn children(&self) -> impl Iterator<Item = &Stored> {
        self.server.objects().filter(|object| CHILDREN.contains(&object.meta.key.kind))
    }

    pub fn deployment(&self) -> Option<&Stored> {
        self.server.get(&deployment_key())
    }

    pub fn has_late_write(&self) -> bool {
        self.processes.iter().any(|process| process.late.is_some())
    }

    /// The late write arrives. `false` if there is none.
    pub fn arrive(&mut self, scope: &Scope) -> bool {
        let mut processes = self.processes.iter_mut();
        let late = processes.find_map(|process| Some((process.controller, process.late.take()?)));
        if let Some((controller, write)) = &late {
            self.commit(scope, *controller, write);
        }
        late.is_some()
    }

    /// A process ends, and the next one begins with empty hands.
    pub fn restart(&mut self, at: usize) {
        let Process { controller, late, .. } = &mut self.processes[at];
        let (controller, late) = (*controller, late.take());
        self.processes[at] = Process { late, ..Process::begin(controller, &self.server) };
    }
}

/// The memory of a process beside its caches.
fn remembered(process: &Process) -> u64 {
    digest(&(&process.memory, &process.held, &process.plan))
}
