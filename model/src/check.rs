//! Runs a model, and returns the outcome.

use std::{collections::BTreeMap, time::Duration};

use stateright::{Checker, Model};

use crate::harness::{Histories, Scenario, World};

/// The outcome of a model.
#[derive(Debug)]
pub struct Checked {
    pub name: &'static str,
    /// Number of different states.
    pub states: usize,
    /// The longest history.
    pub depth: usize,
    pub rules: Vec<&'static str>,
    /// A history for each broken rule.
    pub broken: BTreeMap<&'static str, Vec<String>>,
    pub took: Duration,
}

/// Searches for a history that breaks a rule, and checks no other one meanwhile.
pub fn breaks<M: Scenario>(model: Histories<M>, rule: &'static str) -> Checked {
    check(model.only(rule))
}

/// Searches all histories, until each rule is broken.
pub fn check<M: Scenario>(model: Histories<M>) -> Checked {
    let started = std::time::Instant::now();
    let (name, rules) = (model.scope.name, model.properties().iter().map(|property| property.name).collect());
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let checker = model.checker().threads(threads).spawn_bfs().join();
    let lines = |history: Vec<(World<M>, Option<M::Event>)>| {
        history.into_iter().filter_map(|(world, event)| Some(M::line(&world, &event?))).collect()
    };
    let broken = checker.discoveries().into_iter();
    Checked {
        name,
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        rules,
        broken: broken.map(|(rule, path)| (rule, lines(path.into_vec()))).collect(),
        took: started.elapsed(),
    }
}
