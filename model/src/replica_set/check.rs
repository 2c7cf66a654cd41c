//! Runs a model, and returns the outcome.

use std::{collections::BTreeMap, time::Duration};

use stateright::{Checker, HasDiscoveries, Model};

use super::{ReplicaSet, rule::Rule, scope::Scope, trace};

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
pub fn check(scope: &Scope) -> Checked {
    run(scope, HasDiscoveries::All)
}

/// Searches for a history that breaks a rule.
#[must_use]
pub fn breaks(scope: &Scope, rule: Rule) -> Checked {
    run(scope, HasDiscoveries::AllOf([rule.sentence()].into()))
}

fn run(scope: &Scope, until: HasDiscoveries) -> Checked {
    let started = std::time::Instant::now();
    let model = ReplicaSet::new(scope.clone());
    let rules = model.properties().iter().map(|property| property.name).collect();
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let checker = model.checker().threads(threads).finish_when(until).spawn_bfs().join();
    let broken = checker.discoveries().into_iter();
    Checked {
        name: scope.name,
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        rules,
        broken: broken.map(|(rule, path)| (rule, trace::lines(path.into_vec()))).collect(),
        took: started.elapsed(),
    }
}
