//! Runs the models and prints the outcome of each: `cargo xtask model`.

use std::process::ExitCode;

use clap::Parser;
use model::replica_set::{
    check::{Checked, breaks, check},
    sabotage::Sabotage,
    scopes,
};

/// Run the controllers' own decisions against a model of the API server, in all orders of events.
#[derive(Parser)]
struct Options {
    /// Larger models, which take minutes
    #[arg(long)]
    full: bool,
    /// Only the models whose name contains this, and no sabotage
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

fn main() -> ExitCode {
    let Options { full, only } = Options::parse();
    let mut scopes = if full { scopes::full() } else { scopes::small() };
    scopes.retain(|scope| only.as_ref().is_none_or(|name| scope.name.contains(name)));
    println!(
        "{:<32} {:>9} {:>6} {:>9} {:>8}",
        "basic-replicaset-controller", "states", "depth", "seconds", "rules"
    );
    let mut broken = 0;
    for scope in scopes {
        let checked = check(&scope);
        tell(&checked);
        broken += checked.broken.len();
    }
    if only.is_none() {
        broken += sabotage();
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The number of sabotages that are not caught.
fn sabotage() -> usize {
    let mut missed = 0;
    println!("\n{:<32} {:>9} {:>9}", "sabotage", "states", "seconds");
    for sabotage in Sabotage::ALL {
        let (scope, rule) = scopes::revealing(sabotage);
        let checked = breaks(&scope, rule);
        let seconds = checked.took.as_secs_f64();
        let is_caught = checked.broken.contains_key(rule.sentence());
        let verdict = if is_caught { "breaks" } else { "DOES NOT BREAK" };
        println!(
            "{:<32} {:>9} {seconds:>9.1}  {verdict}: {}",
            format!("{sabotage:?}"),
            checked.states,
            rule.sentence()
        );
        missed += usize::from(!is_caught);
    }
    missed
}

fn tell(checked: &Checked) {
    let Checked { name, states, depth, rules, broken, took } = checked;
    let hold = format!("{}/{}", rules.len() - broken.len(), rules.len());
    println!("{name:<32} {states:>9} {depth:>6} {:>9.1} {hold:>8}", took.as_secs_f64());
    for (rule, history) in broken {
        println!("  BROKEN: {rule}");
        for line in history {
            println!("    {line}");
        }
    }
}
