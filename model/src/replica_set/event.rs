//! The possible next events.

use catena_api::keys;

use super::{
    content::{Object, Phase, Spec, Status, phase, set_spec},
    process::Process,
    sabotage::Sabotage,
    scope::Scope,
    world::{World, set_key},
};
use crate::{
    harness::Fate,
    server::{
        garbage,
        object::{Key, Kind, Meta},
        operation::{Change, Operation, Preconditions},
    },
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A process sees the next events of its two watches, and makes a pass.
    Pass { process: usize, sets: usize, pods: usize },
    /// A process sends the next write of its current step.
    Write(usize, Fate),
    /// The backoffs of a process end.
    Retry(usize),
    /// A process ends, and another one starts.
    Crash(usize),
    /// The garbage collector makes one request.
    Collect(Operation<Spec, Status>),
    /// A kubelet reports the state of a pod.
    Report(Key, Phase),
    /// A kubelet reports that a terminating pod has ended.
    Gone(Key),
    /// A user sets the number of replicas.
    Scale(u8),
    /// The platform team changes the template.
    Roll,
    /// A user deletes the set.
    Delete,
    /// A user creates it again.
    Create,
    /// A user deletes a pod.
    DeletePod(Key),
    /// A user removes the owner of a pod.
    Orphan(Key),
    /// A user removes the label of a pod.
    Strip(Key),
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
        self.events_of_pods(scope, events);
        let set = self.server.get(&set_key());
        match set {
            Some(set) if !set.meta.is_deleting => {
                if self.left.edits > 0
                    && let Some(spec) = set_spec(set)
                {
                    let others = scope.own.sizes.iter().filter(|size| **size != spec.replicas);
                    events.extend(others.map(|size| Event::Scale(*size)));
                    events.push(Event::Roll);
                }
                if self.left.deletions > 0 {
                    events.push(Event::Delete);
                }
            }
            Some(_) => {}
            None => events.push(Event::Create),
        }
        if self.left.ticks > 0 {
            events.push(Event::Tick);
        }
    }

    fn events_of(&self, scope: &Scope, at: usize, process: &Process, events: &mut Vec<Event>) {
        if process.plan.is_empty() {
            for sets in 0..=process.sets.lag() {
                for pods in 0..=process.pods.lag() {
                    if process.sets.is_current_after(sets) && process.pods.is_current_after(pods) {
                        events.push(Event::Pass { process: at, sets, pods });
                    }
                }
            }
            if !process.held.is_empty() && !scope.has(Sabotage::NeverRetries) {
                events.push(Event::Retry(at));
            }
        } else {
            events.push(Event::Write(at, Fate::Answered));
            if self.left.lost_answers > 0 {
                events.extend([Event::Write(at, Fate::LostBefore), Event::Write(at, Fate::LostAfter)]);
            }
        }
        if self.left.crashes > 0 {
            events.push(Event::Crash(at));
        }
    }

    fn events_of_pods(&self, scope: &Scope, events: &mut Vec<Event>) {
        // A pod of somebody else has its own kubelet.
        for pod in self.pods().filter(|pod| !pod.meta.labels.is_empty() || !pod.meta.owners.is_empty()) {
            let key = || pod.meta.key.clone();
            if pod.meta.is_deleting {
                events.push(Event::Gone(key()));
                continue;
            }
            if phase(pod).is_none() && scope.can_serve(pod) {
                events.push(Event::Report(key(), Phase::Ready(self.server.clock)));
            }
            if self.left.failures > 0 && phase(pod) != Some(Phase::Failed) {
                events.push(Event::Report(key(), Phase::Failed));
            }
            if self.left.meddling > 0 {
                events.push(Event::DeletePod(key()));
                if pod.meta.controller().is_some() {
                    events.push(Event::Orphan(key()));
                }
                if scope.own.loses_labels && pod.meta.labels.contains_key(keys::REPLICA_SET_UID) {
                    events.push(Event::Strip(key()));
                }
            }
        }
    }

    /// Performs the event. `false` if the state stays the same.
    pub fn happens(&mut self, scope: &Scope, event: Event) -> bool {
        match event {
            Event::Pass { process, sets, pods } => return self.pass(scope, process, sets, pods),
            Event::Write(process, fate) => {
                if fate != Fate::Answered {
                    self.left.lost_answers -= 1;
                    self.ledger.is_doubtful = true;
                }
                self.write(scope, process, fate);
            }
            Event::Retry(process) => self.processes[process].retries(),
            Event::Crash(process) => {
                self.left.crashes -= 1;
                self.ledger.is_doubtful = true;
                self.processes[process] = if scope.has(Sabotage::BelievesAnOldList) {
                    self.processes[process].begin_with_an_old_list()
                } else {
                    Process::begin(&self.server)
                };
            }
            Event::Collect(operation) => drop(self.ask(operation)),
            Event::Report(key, phase) => {
                if phase == Phase::Failed {
                    self.left.failures -= 1;
                    self.ledger.is_disturbed = true;
                }
                self.ask(Operation::report(key, Status::Pod(phase)));
            }
            Event::Gone(key) => drop(self.ask(Operation::end(key))),
            Event::Tick => {
                self.left.ticks -= 1;
                self.server.clock += 1;
            }
            edit => self.edit(scope, edit),
        }
        true
    }

    /// Events caused by people.
    fn edit(&mut self, scope: &Scope, event: Event) {
        let Some(set) = self.server.get(&set_key()).cloned() else {
            let set = first_set(scope);
            (self.ledger.is_disturbed, self.ledger.is_doubtful) = (true, true);
            self.ledger.begins(set_spec(&set).unwrap_or(&scope.spec()));
            self.ask(Operation::Create(set));
            return;
        };
        let mut spec = set_spec(&set).unwrap_or(&scope.spec()).clone();
        let before = spec.clone();
        match event {
            Event::Scale(replicas) => spec.replicas = replicas,
            Event::Roll => spec.text = if &*spec.text == "a" { "b".into() } else { "a".into() },
            Event::Delete => {
                self.left.deletions -= 1;
                let any = Preconditions::default();
                self.ask(Operation::delete(set_key(), any, Some(scope.propagation)));
                return;
            }
            event => return self.meddle(&event),
        }
        self.left.edits -= 1;
        self.ledger.changes(&before, &spec);
        self.ask(patch(set_key(), Change::Spec(Spec::Set(spec))));
    }

    fn meddle(&mut self, event: &Event) {
        self.left.meddling -= 1;
        self.ledger.is_disturbed = true;
        self.ledger.is_doubtful = true;
        let (Event::DeletePod(key) | Event::Orphan(key) | Event::Strip(key)) = event else {
            return;
        };
        let controller = self.server.get(key).and_then(|pod| pod.meta.controller().cloned());
        let operation = match (event, controller) {
            (Event::DeletePod(_), _) => Operation::delete(key.clone(), Preconditions::default(), None),
            (Event::Orphan(_), Some(uid)) => patch(key.clone(), Change::RemoveOwner(uid)),
            _ => patch(key.clone(), Change::Label(keys::REPLICA_SET_UID.into(), None)),
        };
        self.ask(operation);
    }
}

fn patch(key: Key, change: Change<Spec>) -> Operation<Spec, Status> {
    Operation::merge(key, Preconditions::default(), vec![change])
}

/// The set as a user creates it.
pub fn first_set(scope: &Scope) -> Object {
    let meta = Meta::new(Kind::ReplicaSet, "web");
    Object { meta, spec: Spec::Set(scope.spec()), status: Status::None }
}
