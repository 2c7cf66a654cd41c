//! The transitions of a world: those of its controllers.

use super::{
    content::{Answer, CHILDREN, COMMANDS, NAME, Operation, Stored},
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
        self.ledger.sees(&self.server);
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
        let Some(object) = process.cache(key.kind).get(key).cloned() else { return false };
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
            Fate::Answered => Some(self.commit(scope, at, &write)),
            Fate::LostAfter => {
                self.commit(scope, at, &write);
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

    /// A write of a process is performed and judged.
    fn commit(&mut self, scope: &Scope, at: usize, write: &Write) -> Answer {
        let before = self.desired_of_known(at, write);
        let answer = self.perform(scope, self.processes[at].controller, write);
        self.judge_budget(at, write, before);
        answer
    }

    /// A write is performed, and judged but for the budget of an exchange.
    fn perform(&mut self, scope: &Scope, controller: Controller, write: &Write) -> Answer {
        let before = self.server.get(write.operation.key()).cloned();
        let answer = self.ask(scope, write.merged_with(before.as_ref()));
        if let Answer::Done(after) = &answer {
            self.ledger.changes(controller, write, before.as_ref(), after);
        }
        answer
    }

    /// The desired replicas of all children of the `BasicDeployment` that a write is about, but for one that a dead process has
    /// left behind and no watch has shown: to its successor, that is what the other one of two acting processes does.
    fn desired_of_known(&self, at: usize, write: &Write) -> i64 {
        let Self { server, processes, ledger, .. } = self;
        let is_known = |child: &Stored| {
            let mut caches = processes[at].caches.iter();
            !ledger.left_behind.contains(&child.meta.uid)
                || caches
                    .any(|cache| cache.get(&child.meta.key).is_some_and(|row| row.meta.uid == child.meta.uid))
        };
        rule::desired_of_all(server, &write.whose.meta.uid, is_known)
    }

    /// Whether a write has kept to the budget of an exchange. `before` are the replicas that were desired before it.
    fn judge_budget(&mut self, at: usize, write: &Write, before: i64) {
        let most = rule::budget(&write.whose).most;
        let is_judged = self.processes[at].controller == Controller::Deployments;
        if is_judged && self.desired_of_known(at, write) > before.max(most) {
            self.ledger.breaks(Rule::Budget);
        }
    }

    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = &Stored> {
        self.server.objects().filter(move |object| object.meta.key.kind == kind)
    }

    /// The commands of all kinds.
    pub fn commands(&self) -> impl Iterator<Item = &Stored> {
        COMMANDS.into_iter().flat_map(|kind| self.objects(kind))
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

    /// A process ends in the middle of a write, and the next one begins.
    ///
    /// No other object can be the precondition of a create, so that one that is late arrives whatever the successor has done
    /// meanwhile. It keeps to the budget of an exchange by what is there when it is sent.
    pub fn leave_behind(&mut self, at: usize) {
        let late = self.processes[at].plan.pop_front();
        if let Some(write) = late.as_ref().filter(|write| is_create(write)) {
            let (now, before) = (self.server.clone(), self.desired_of_known(at, write));
            self.server.apply(write.operation.clone());
            self.judge_budget(at, write, before);
            self.server = now;
        }
        self.processes[at].late = late;
        self.restart(at);
    }

    /// The late write arrives. `false` if there is none.
    pub fn arrive(&mut self, scope: &Scope) -> bool {
        let mut processes = self.processes.iter_mut().enumerate();
        let late = processes.find_map(|(at, process)| Some((at, process.late.take()?)));
        let Some((at, write)) = &late else { return false };
        if !is_create(write) {
            self.commit(scope, *at, write);
        } else if let Answer::Done(left) = self.perform(scope, self.processes[*at].controller, write) {
            self.ledger.left_behind.insert(left.meta.uid.clone());
        }
        true
    }

    /// A process ends, and the next one begins with empty hands.
    pub fn restart(&mut self, at: usize) {
        let Process { controller, late, .. } = &mut self.processes[at];
        let (controller, late) = (*controller, late.take());
        self.processes[at] = Process { late, ..Process::begin(controller, &self.server) };
    }
}

fn is_create(write: &Write) -> bool {
    matches!(write.operation, Operation::Create(_))
}

/// The memory of a process beside its caches.
fn remembered(process: &Process) -> u64 {
    digest(&(&process.memory, &process.held, &process.plan))
}
