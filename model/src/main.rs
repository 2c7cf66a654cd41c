//! Runs the models and prints the outcome of each: `cargo xtask model`.

mod choice;

use std::{fmt::Debug, process::ExitCode, time::Instant};

use choice::Choice;
use clap::{Parser, ValueEnum};
use model::{
    chain::{self, Chain, walk::walk},
    check::{Checked, breaks, check},
    harness::{Histories, Scenario},
    replica_set::{self, ReplicaSet},
};

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
    let choice = Choice(only);
    let sets = if full { replica_set::scopes::full() } else { replica_set::scopes::small() };
    let chains = if full { chain::scopes::full() } else { chain::scopes::small() };
    let whole = chain::scopes::whole();
    let names = sets.iter().map(|scope| scope.name).chain(chains.iter().map(|scope| scope.name));
    if let Some(problem) = choice.problem(&names.chain([whole.name]).collect::<Vec<_>>()) {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    let mut broken = 0;
    head("basic-replicaset-controller");
    for scope in sets.into_iter().filter(|scope| choice.includes(scope.name)) {
        broken += search(ReplicaSet::new(scope));
    }
    head("the other controllers");
    for scope in chains.into_iter().filter(|scope| choice.includes(scope.name)) {
        broken += search(Chain::new(scope));
    }
    if choice.includes(whole.name) {
        broken += wander(&Chain::new(whole), seed, if full { MANY_HISTORIES } else { HISTORIES });
    }
    if choice.0.is_none() {
        broken += sabotage();
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn head(title: &str) {
    println!("\n{title:<34} {:>9} {:>6} {:>9} {:>8}", "states", "depth", "seconds", "rules");
}

/// Searches all histories, and returns the number of broken rules.
fn search(model: Histories<impl Scenario>) -> usize {
    let Checked { name, states, depth, rules, broken, took } = check(model);
    let hold = format!("{}/{}", rules.len() - broken.len(), rules.len());
    println!("{name:<34} {states:>9} {depth:>6} {:>9.1} {hold:>8}", took.as_secs_f64());
    for (rule, history) in &broken {
        tell(rule, history);
    }
    broken.len()
}

/// Looks at random histories, and returns the number of broken rules.
fn wander(chain: &Chain, seed: u64, histories: u64) -> usize {
    let began = Instant::now();
    let walked = walk(chain, seed, histories);
    let (name, seconds) = (chain.scope.name, began.elapsed().as_secs_f64());
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
        missed += miss(sabotage, ReplicaSet::new(scope), rule.sentence());
    }
    for sabotage in chain::sabotage::Sabotage::value_variants() {
        for (scope, rule) in chain::scopes::revealing(*sabotage) {
            missed += miss(sabotage, Chain::new(scope), rule.sentence());
        }
    }
    missed
}

fn miss(sabotage: impl Debug, model: Histories<impl Scenario>, rule: &'static str) -> usize {
    let checked = breaks(model, rule);
    let seconds = checked.took.as_secs_f64();
    let is_caught = checked.broken.contains_key(rule);
    let verdict = if is_caught { "breaks" } else { "DOES NOT BREAK" };
    let (sabotage, states) = (format!("{sabotage:?}"), checked.states);
    println!("{sabotage:<34} {states:>9} {seconds:>9.1}  {verdict}: {rule}");
    usize::from(!is_caught)
}
