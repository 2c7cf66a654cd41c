//! The complete state of the chain at one moment, and the transitions of its controllers.

use std::hash::{Hash, Hasher};

use super::{
    content::{Answer, CHILDREN, NAME, Operation, Server, Stored},
    controller::Controller,
    controllers,
    process::Process,
    rule::{self, Ledger, Rule},
    scope::{Budget, Scope},
    write::{Purpose, Write},
};
use crate::{
    harness::{Rest, digest},
    server::object::{Key, Kind},
};

/// The complete state at one moment.
#[derive(Clone, Debug)]
pub struct World {
    /// The API server.
    pub server: Server,
    /// A process of each controller.
    pub processes: Vec<Process>,
    /// The remaining budget of events.
    pub left: Budget,
    /// The facts about the history that rules need.
    pub ledger: Ledger,
    /// A write of a process that has ended, which is still on its way to the server.
    pub late: Option<(Controller, Write)>,
    /// Number of writes so far, which makes no difference between states.
    pub writes: u32,
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.left.hash(state);
        self.ledger.hash(state);
        self.present(state);
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        digest(self) == digest(other)
    }
}

/// The fate of a write and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It takes effect and is answered.
    Answered,
    /// It does not take effect.
    LostBefore,
    /// It takes effect, and the answer is lost.
    LostAfter,
    /// The server refuses it.
    Refused,
}

/// The only `BasicDeployment`.
#[must_use]
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

    /// A process sends its next write.
    pub fn write(&mut self, scope: &Scope, at: usize, fate: Fate) {
        let Some(write) = self.processes[at].plan.pop_front() else { return };
        self.writes += 1;
        if write.purpose == Purpose::Reap {
            self.ledger.reaps(&write.whose);
        }
        let answer = match fate {
            Fate::LostBefore => None,
            Fate::Refused => {
                self.ledger.refuses(&write.whose.meta.uid);
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

    /// The objects of a kind.
    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = &Stored> {
        self.server.objects().filter(move |object| object.meta.key.kind == kind)
    }

    /// The children of all kinds.
    pub fn children(&self) -> impl Iterator<Item = &Stored> {
        self.server.objects().filter(|object| CHILDREN.contains(&object.meta.key.kind))
    }

    /// The `BasicDeployment`, if it exists.
    #[must_use]
    pub fn deployment(&self) -> Option<&Stored> {
        self.server.get(&deployment_key())
    }

    /// A process ends in the middle of a write, which arrives later.
    pub fn leave_behind(&mut self, at: usize) {
        let controller = self.processes[at].controller;
        self.late = self.processes[at].plan.pop_front().map(|write| (controller, write));
        self.restart(at);
    }

    /// The late write arrives.
    pub fn arrive(&mut self, scope: &Scope) {
        if let Some((controller, write)) = self.late.take() {
            self.commit(scope, controller, &write);
        }
    }

    /// A process ends, and the next one begins with empty hands.
    pub fn restart(&mut self, at: usize) {
        let controller = self.processes[at].controller;
        self.processes[at] = Process::begin(controller, &self.server);
    }
}

/// The memory of a process beside its caches.
fn remembered(process: &Process) -> u64 {
    digest(&(&process.memory, &process.held, &process.plan))
}
