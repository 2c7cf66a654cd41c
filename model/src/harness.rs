//! What both models share: the histories of a world, and its coming to rest.

use std::{
    collections::HashSet,
    fmt::Debug,
    hash::{DefaultHasher, Hash, Hasher},
};

use operator_kit::report::{Category, Failure};
use parking_lot::Mutex;
use stateright::{Model, Property};

/// The complete state of a model at one moment, and its transitions.
pub trait Scenario: Rest + Clone + Debug + Hash + PartialEq + Send + Sync + 'static {
    /// An event.
    type Event: Clone + Debug + PartialEq + Send + Sync + 'static;

    /// The name of a model.
    fn name(scope: &Self::Scope) -> &'static str;

    /// The rules that hold in every history.
    fn rules(scope: &Self::Scope) -> Vec<Property<Histories<Self>>>;

    /// The beginning of every history.
    fn begin(scope: &Self::Scope) -> Self;

    /// Whether its history is followed: one with too many objects is not, because it may have no end.
    fn is_followed(&self, scope: &Self::Scope) -> bool;

    /// Adds all events that are possible now.
    fn add_events(&self, scope: &Self::Scope, events: &mut Vec<Self::Event>);

    /// Performs the event. `false` if the state stays the same.
    fn perform(&mut self, scope: &Self::Scope, event: Self::Event) -> bool;

    /// An event as a line for people, with the objects that exist before it.
    fn line(&self, event: &Self::Event) -> String;
}

/// How a world comes to rest without further faults: everybody does their outstanding work, in turns.
pub trait Rest {
    /// The size of a model: its possible events, and their number.
    type Scope: Send + Sync + 'static;

    /// Maximum number of rounds until everything has come to rest. A round is a few seconds, or a tick if nothing else is
    /// left to do.
    const ROUNDS: usize;
    /// Maximum number of writes until then.
    const WRITES: u32;

    /// Hashes the part of the state that determines the future without further faults.
    fn present<H: Hasher>(&self, state: &mut H);

    /// Number of writes so far, which makes no difference between states.
    fn writes(&mut self) -> &mut u32;

    /// The time after which every delay of the controllers has passed.
    fn end(&self, scope: &Self::Scope) -> u8;

    /// Everybody does their outstanding work. `false` if it has no end.
    fn round(&mut self, scope: &Self::Scope, end: u8) -> bool;

    /// Whether the desired state exists and is reported.
    fn is_as_wanted(&self, scope: &Self::Scope) -> bool;

    /// A hash of everything that determines the future.
    #[must_use]
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.present(&mut hasher);
        hasher.finish()
    }
}

/// A model: all histories of a world.
pub struct Histories<W: Scenario> {
    /// Its size.
    pub scope: W::Scope,
    /// Worlds that are known to come to rest, by their fingerprints.
    known: Mutex<HashSet<u64>>,
}

impl<W: Scenario> Histories<W> {
    /// The model of this scope.
    #[must_use]
    pub fn new(scope: W::Scope) -> Self {
        Self { scope, known: Mutex::default() }
    }

    /// Whether a world without further faults comes to rest in the desired state, with a bounded number of writes.
    #[must_use]
    pub fn comes_to_rest(&self, world: &W) -> bool {
        let mut world = world.clone();
        let mut on_the_way = Vec::new();
        *world.writes() = 0;
        let end = world.end(&self.scope);
        for _ in 0..W::ROUNDS {
            let here = world.fingerprint();
            if self.known.lock().contains(&here) {
                self.known.lock().extend(on_the_way);
                return true;
            }
            on_the_way.push(here);
            if !world.round(&self.scope, end) || *world.writes() > W::WRITES {
                return false;
            }
            if world.fingerprint() == here {
                let is_as_wanted = world.is_as_wanted(&self.scope);
                if is_as_wanted {
                    self.known.lock().extend(on_the_way);
                }
                return is_as_wanted;
            }
        }
        false
    }
}

impl<W: Scenario> Model for Histories<W> {
    type State = W;
    type Action = W::Event;

    fn init_states(&self) -> Vec<W> {
        vec![W::begin(&self.scope)]
    }

    fn actions(&self, world: &W, events: &mut Vec<W::Event>) {
        world.add_events(&self.scope, events);
    }

    fn next_state(&self, world: &W, event: W::Event) -> Option<W> {
        let mut world = world.clone();
        world.perform(&self.scope, event).then_some(world)
    }

    fn within_boundary(&self, world: &W) -> bool {
        world.is_followed(&self.scope)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        W::rules(&self.scope)
    }
}

/// The rules of a world's ledger, and in any case that it comes to rest.
macro_rules! rules {
    ($($rule:ident),*) => {
        vec![
            $(Property::always(Rule::$rule.sentence(), |_, world: &World| !world.ledger.has_broken(Rule::$rule)),)*
            Property::always(Rule::Rest.sentence(), |model: &Histories<World>, world| model.comes_to_rest(world)),
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
#[must_use]
pub fn failure() -> Failure {
    Failure {
        category: Category::Transient,
        reason: "Failed",
        message: String::new(),
        is_expected: false,
        next_retry: None,
    }
}
