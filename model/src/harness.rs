//! What both models share: their size, their worlds, the histories of a world, and its coming to rest.

use std::{
    collections::HashSet,
    fmt::Debug,
    hash::{DefaultHasher, Hash, Hasher},
};

use operator_watch::Failure;
use parking_lot::Mutex;
use stateright::{Model, Property};

use crate::server::{Server, operation::Propagation};

/// A model by its own parameters: its events, and how a world comes to rest without further faults, in rounds in which
/// everybody does their outstanding work.
pub trait Scenario: Clone + Debug + Send + Sync + 'static {
    type Spec: Clone + Debug + PartialEq + Hash + Send + Sync;
    type Status: Clone + Debug + PartialEq + Hash + Default + Send + Sync;
    type Process: Clone + Debug + Hash + Send + Sync;
    type Ledger: Clone + Debug + Hash + Send + Sync;
    type Event: Clone + Debug + PartialEq + Send + Sync;
    /// A defect of a controller.
    type Sabotage: Clone + Debug + PartialEq + Send + Sync;

    /// Maximum number of rounds until everything has come to rest. A round is a few seconds, or a tick if nothing else is
    /// left to do.
    const ROUNDS: usize;
    /// Maximum number of writes until then.
    const WRITES: u32;
    /// Maximum number of uninterrupted steps of a process in one round.
    const STEPS: usize;

    /// The rules that hold in every history.
    fn rules(&self) -> Vec<Property<Histories<Self>>>;

    /// The beginning of every history.
    fn begin(scope: &Scope<Self>) -> World<Self>;

    /// Adds all events that are possible now.
    fn events(world: &World<Self>, scope: &Scope<Self>, events: &mut Vec<Self::Event>);

    /// Performs the event. `false` if the state stays the same.
    fn happens(world: &mut World<Self>, scope: &Scope<Self>, event: Self::Event) -> bool;

    /// An event as a line for people, with the objects that exist before it.
    fn line(world: &World<Self>, event: &Self::Event) -> String;

    /// The time after which every delay of the controllers has passed.
    fn end(world: &World<Self>, scope: &Scope<Self>) -> u8;

    /// Everybody does their outstanding work. `false` if it has no end.
    fn round(world: &mut World<Self>, scope: &Scope<Self>, end: u8) -> bool;

    /// A process sends its next write. `false` if it has none.
    fn write(world: &mut World<Self>, scope: &Scope<Self>, at: usize, fate: Fate) -> bool;

    /// A process sees everything, and decides until it has something to do. `false` if it has nothing to do.
    fn pass_over_all(world: &mut World<Self>, scope: &Scope<Self>, at: usize) -> bool;

    /// Whether the desired state exists and is reported.
    fn is_as_wanted(world: &World<Self>, scope: &Scope<Self>) -> bool;
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

/// The number of faults and changes of each kind in one history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// A user changes the spec.
    pub edits: u8,
    /// A user chooses the template of the other kind of children.
    pub switches: u8,
    /// A user deletes the object, and may create it again.
    pub deletions: u8,
    /// A user creates a restart.
    pub orders: u8,
    /// A user creates a rollback to the previous revision.
    pub rollbacks: u8,
    /// Somebody removes one of the two records that a command has run: the one on its target, or its status.
    pub wipes: u8,
    /// A user deletes a command, and a pipeline creates a missing one again.
    pub cancels: u8,
    /// A person deletes a pod, or removes its owner or its label; writes what looks like a backup, deletes a backup, or
    /// releases a held object.
    pub meddling: u8,
    /// A pod ends by itself, or a backup fails.
    pub failures: u8,
    /// The server refuses a backup.
    pub refusals: u8,
    /// A process ends at any point, and starts again with an empty memory.
    pub crashes: u8,
    /// A write is not answered, but may have taken effect.
    pub lost_answers: u8,
    /// A process ends in the middle of a write, which arrives when the next process has already begun to act.
    pub late_writes: u8,
    /// Time passes.
    pub ticks: u8,
}

pub const NONE: Budget = Budget {
    edits: 0,
    switches: 0,
    deletions: 0,
    orders: 0,
    rollbacks: 0,
    wipes: 0,
    cancels: 0,
    meddling: 0,
    failures: 0,
    refusals: 0,
    crashes: 0,
    lost_answers: 0,
    late_writes: 0,
    ticks: 0,
};

/// The size of a model: its possible events, and their number.
#[derive(Clone, Debug)]
pub struct Scope<M: Scenario> {
    pub name: &'static str,
    /// The propagation of the deletion.
    pub propagation: Propagation,
    /// Maximum number of objects: longer histories are not followed, because they may have no end.
    pub objects: u8,
    pub budget: Budget,
    pub sabotage: Option<M::Sabotage>,
    /// What only this model has.
    pub own: M,
}

impl<M: Scenario> Scope<M> {
    pub fn new(name: &'static str, objects: u8, budget: Budget, own: M) -> Self {
        Self { name, propagation: Propagation::Background, objects, budget, sabotage: None, own }
    }

    pub fn has(&self, sabotage: M::Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    /// The same, with a defect of a controller.
    pub fn sabotaged(self, sabotage: M::Sabotage) -> Self {
        Self { sabotage: Some(sabotage), ..self }
    }
}

/// The complete state at one moment.
#[derive(Clone, Debug)]
pub struct World<M: Scenario> {
    pub server: Server<M::Spec, M::Status>,
    pub processes: Vec<M::Process>,
    /// The remaining budget of events.
    pub left: Budget,
    /// The facts about the history that rules need.
    pub ledger: M::Ledger,
    /// Number of writes so far, which makes no difference between states.
    pub writes: u32,
}

impl<M: Scenario> World<M> {
    /// A hash of everything that determines the future without further faults. Processes are interchangeable: their order
    /// makes no other state.
    pub fn fingerprint(&self) -> u64 {
        let mut processes: Vec<u64> = self.processes.iter().map(digest).collect();
        processes.sort_unstable();
        digest(&(processes, &self.server))
    }

    /// A process does its outstanding work. Returns whether there was any.
    pub fn work(&mut self, scope: &Scope<M>, at: usize) -> bool {
        let before = self.fingerprint();
        for _ in 0..M::STEPS {
            while M::write(self, scope, at, Fate::Answered) {}
            if !M::pass_over_all(self, scope, at) {
                break;
            }
        }
        self.fingerprint() != before
    }
}

impl<M: Scenario> Hash for World<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.left, &self.ledger, self.fingerprint()).hash(state);
    }
}

impl<M: Scenario> PartialEq for World<M> {
    fn eq(&self, other: &Self) -> bool {
        digest(self) == digest(other)
    }
}

/// All histories of a model.
pub struct Histories<M: Scenario> {
    pub scope: Scope<M>,
    /// The only rule that is checked, if not all are.
    only: Option<&'static str>,
    /// Worlds that are known to come to rest, by their fingerprints.
    known: Mutex<HashSet<u64>>,
}

impl<M: Scenario> Histories<M> {
    pub fn new(scope: Scope<M>) -> Self {
        Self { scope, only: None, known: Mutex::default() }
    }

    /// The same, in which only this rule is checked.
    pub fn only(self, rule: &'static str) -> Self {
        Self { only: Some(rule), ..self }
    }

    /// Whether a world without further faults comes to rest in the desired state, with a bounded number of writes.
    pub fn comes_to_rest(&self, world: &World<M>) -> bool {
        let mut world = World { writes: 0, ..world.clone() };
        let mut on_the_way = Vec::new();
        let end = M::end(&world, &self.scope);
        for _ in 0..M::ROUNDS {
            let here = world.fingerprint();
            if self.known.lock().contains(&here) {
                self.known.lock().extend(on_the_way);
                return true;
            }
            on_the_way.push(here);
            if !M::round(&mut world, &self.scope, end) || world.writes > M::WRITES {
                return false;
            }
            if world.fingerprint() == here {
                let is_as_wanted = M::is_as_wanted(&world, &self.scope);
                if is_as_wanted {
                    self.known.lock().extend(on_the_way);
                }
                return is_as_wanted;
            }
        }
        false
    }
}

impl<M: Scenario> Model for Histories<M> {
    type State = World<M>;
    type Action = M::Event;

    fn init_states(&self) -> Vec<World<M>> {
        vec![M::begin(&self.scope)]
    }

    fn actions(&self, world: &World<M>, events: &mut Vec<M::Event>) {
        M::events(world, &self.scope, events);
    }

    fn next_state(&self, world: &World<M>, event: M::Event) -> Option<World<M>> {
        let mut world = world.clone();
        M::happens(&mut world, &self.scope, event).then_some(world)
    }

    fn within_boundary(&self, world: &World<M>) -> bool {
        world.server.created() <= self.scope.objects
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let rules = self.scope.own.rules().into_iter();
        rules.filter(|rule| self.only.is_none_or(|only| rule.name == only)).collect()
    }
}

/// The rules of a model's ledger, and in any case that it comes to rest.
macro_rules! rules {
    ($($rule:ident),*) => {
        vec![
            $(Property::always(Rule::$rule.sentence(), |_, world: &World| !world.ledger.has_broken(Rule::$rule)),)*
            Property::always(Rule::Rest.sentence(), |model: &Histories<Self>, world| model.comes_to_rest(world)),
        ]
    };
}
pub(crate) use rules;

/// The hash of a value.
pub fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The failure of a step, as the kit keeps it.
pub fn failure() -> Failure {
    Failure::transient("Failed", "")
}
