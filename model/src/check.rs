//! Runs a model, and returns the outcome.

use std::{collections::BTreeMap, fmt::Debug, hash::Hash, time::Duration};

use stateright::{Checker, HasDiscoveries, Model};

/// A model whose histories can be told.
pub trait Checkable:
    Model<
        State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
        Action: Clone + Debug + PartialEq + Send + Sync + 'static,
    > + Send
    + Sync
    + 'static
{
    /// Its name.
    fn name(&self) -> &'static str;

    /// A history as lines for people.
    fn lines(history: Vec<(Self::State, Option<Self::Action>)>) -> Vec<String>;
}

/// The outcome of a model.
#[derive(Debug)]
pub struct Checked {
    /// Its name.
    pub name: &'static str,
    /// Number of different states.
    pub states: usize,
    /// The longest history.
    pub depth: usize,
    /// The checked rules.
    pub rules: Vec<&'static str>,
    /// A history for each broken rule.
    pub broken: BTreeMap<&'static str, Vec<String>>,
    /// Duration of the run.
    pub took: Duration,
}

/// Searches all histories.
#[must_use]
pub fn check<M: Checkable>(model: M) -> Checked {
    run(model, HasDiscoveries::All)
}

/// Searches for a history that breaks a rule.
#[must_use]
pub fn breaks<M: Checkable>(model: M, rule: &'static str) -> Checked {
    run(model, HasDiscoveries::AllOf([rule].into()))
}

fn run<M: Checkable>(model: M, until: HasDiscoveries) -> Checked {
    let started = std::time::Instant::now();
    let (name, rules) = (model.name(), model.properties().iter().map(|property| property.name).collect());
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let checker = model.checker().threads(threads).finish_when(until).spawn_bfs().join();
    let broken = checker.discoveries().into_iter();
    Checked {
        name,
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        rules,
        broken: broken.map(|(rule, path)| (rule, M::lines(path.into_vec()))).collect(),
        took: started.elapsed(),
    }
}
