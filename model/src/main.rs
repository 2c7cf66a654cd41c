//! Runs the controllers' own decisions against a model of the API server, in all orders of events, and prints the outcome of
//! each model: `cargo xtask model`.
//!
//! [`server`] is the API server as plain data; [`cache`] is a watch that lags; [`harness`] follows histories. Each controller
//! has a module with its glue: its observation of server and cache, and the requests of its actions. The decision in between
//! is made by the controller's library itself.

mod cache;
mod chain;
mod check;
mod clock;
mod harness;
mod metadata;
mod replica_set;

use std::{fmt::Debug, process::ExitCode, time::Instant};

use chain::{scope::Chain, walk::walk};
use check::{Checked, breaks, check};
use clap::{Parser, ValueEnum};
use harness::{Histories, Scenario, Scope};
use model::server;

/// Number of random histories of the whole chain.
const HISTORIES: u64 = 200;
/// The same with `--full`.
const MANY_HISTORIES: u64 = 2_000;

/// Run the controllers' own decisions against a model of the API server, in all orders of events.
#[derive(Parser)]
struct Cli {
    /// Larger models, which take minutes
    #[arg(long)]
    full: bool,
    /// Only the models whose name contains this, and no sabotage
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Seed of the random histories of the whole chain
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

fn main() -> ExitCode {
    let Cli { full, only, seed } = Cli::parse();
    let only = only.as_deref();
    let sets = if full { replica_set::scopes::full() } else { replica_set::scopes::small() };
    let chains = if full { chain::scopes::full() } else { chain::scopes::small() };
    let whole = chain::scopes::whole();
    let names = sets.iter().map(|scope| scope.name).chain(chains.iter().map(|scope| scope.name));
    if let Some(problem) = nothing_chosen(only, &names.chain([whole.name]).collect::<Vec<_>>()) {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    let mut broken = search("basic-replicaset-controller", only, sets);
    broken += search("the other controllers", only, chains);
    if is_chosen(only, whole.name) {
        broken += wander(&Histories::new(whole), seed, if full { MANY_HISTORIES } else { HISTORIES });
    }
    if only.is_none() {
        broken += sabotage();
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn is_chosen(only: Option<&str>, name: &str) -> bool {
    only.is_none_or(|part| name.contains(part))
}

/// The reason why nothing would be searched, which would pass.
fn nothing_chosen(only: Option<&str>, names: &[&str]) -> Option<String> {
    let part = only.filter(|_| !names.iter().any(|name| is_chosen(only, name)))?;
    Some(format!("no model has {part:?} in its name; there are:\n  {}", names.join("\n  ")))
}

/// Searches all histories of the chosen models, and returns the number of broken rules.
fn search<M: Scenario>(title: &str, only: Option<&str>, scopes: Vec<Scope<M>>) -> usize {
    println!("\n{title:<34} {:>9} {:>6} {:>9} {:>8}", "states", "depth", "seconds", "rules");
    let mut all = 0;
    for scope in scopes.into_iter().filter(|scope| is_chosen(only, scope.name)) {
        let Checked { name, states, depth, rules, broken, took } = check(Histories::new(scope));
        let hold = format!("{}/{}", rules.len() - broken.len(), rules.len());
        println!("{name:<34} {states:>9} {depth:>6} {:>9.1} {hold:>8}", took.as_secs_f64());
        for (rule, history) in &broken {
            tell(rule, history);
        }
        all += broken.len();
    }
    all
}

/// Looks at random histories, and returns the number of broken rules.
fn wander(model: &Histories<Chain>, seed: u64, histories: u64) -> usize {
    let began = Instant::now();
    let walked = walk(model, seed, histories);
    let (name, seconds) = (model.scope.name, began.elapsed().as_secs_f64());
    println!(
        "{name:<34} {histories} random histories by the seed {seed}, {} events, {seconds:.1} s",
        walked.events
    );
    if let Some((rule, history)) = &walked.broken {
        tell(rule.sentence(), history);
    }
    usize::from(walked.broken.is_some())
}

fn tell(rule: &str, history: &[String]) {
    println!("  BROKEN: {rule}");
    for line in history {
        println!("    {line}");
    }
}

/// The number of sabotages that are not caught.
fn sabotage() -> usize {
    println!("\n{:<34} {:>9} {:>9}", "sabotage", "states", "seconds");
    let mut missed = 0;
    for sabotage in replica_set::sabotage::Sabotage::value_variants() {
        let (scope, rule) = replica_set::scopes::revealing(*sabotage);
        missed += miss(sabotage, scope, rule.sentence());
    }
    for sabotage in chain::sabotage::Sabotage::value_variants() {
        let (scope, rule) = chain::scopes::revealing(*sabotage);
        missed += miss(sabotage, scope, rule.sentence());
    }
    missed
}

fn miss<M: Scenario>(sabotage: impl Debug, scope: Scope<M>, rule: &'static str) -> usize {
    let checked = breaks(Histories::new(scope), rule);
    let seconds = checked.took.as_secs_f64();
    let is_caught = checked.broken.contains_key(rule);
    let verdict = if is_caught { "breaks" } else { "DOES NOT BREAK" };
    let (sabotage, states) = (format!("{sabotage:?}"), checked.states);
    println!("{sabotage:<34} {states:>9} {seconds:>9.1}  {verdict}: {rule}");
    usize::from(!is_caught)
}

#[cfg(test)]
mod tests {
    use super::nothing_chosen;

    #[test]
    fn a_choice_of_no_model_names_those_that_there_are() {
        let names = ["one kind", "deletion"];
        let said = nothing_chosen(Some("nonsense"), &names).unwrap();
        assert!(["nonsense", "one kind", "deletion"].iter().all(|part| said.contains(part)), "{said}");
        assert_eq!(nothing_chosen(Some("kind"), &names), None);
        assert_eq!(nothing_chosen(None, &names), None);
    }
}
