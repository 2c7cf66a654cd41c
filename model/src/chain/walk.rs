//! Random histories of models that are too large to be searched completely.

use clap::ValueEnum;
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{rule::Rule, scope::Chain};
use crate::harness::{Histories, Scenario};

/// Maximum number of events of one history.
const EVENTS: usize = 400;

/// The outcome of random histories.
#[derive(Debug)]
pub struct Walked {
    pub events: usize,
    /// The first history that broke a rule.
    pub broken: Option<(Rule, Vec<String>)>,
}

/// This number of random histories, by a seed.
pub fn walk(chain: &Histories<Chain>, seed: u64, histories: u64) -> Walked {
    let mut events = 0;
    for number in 0..histories {
        let (length, broken) = one(chain, &mut StdRng::seed_from_u64(seed.wrapping_add(number)));
        events += length;
        if broken.is_some() {
            return Walked { events, broken };
        }
    }
    Walked { events, broken: None }
}

/// One history, which ends when nothing more can happen.
fn one(chain: &Histories<Chain>, random: &mut StdRng) -> (usize, Option<(Rule, Vec<String>)>) {
    let (mut world, mut lines) = (Chain::begin(&chain.scope), Vec::new());
    for length in 0..EVENTS {
        let mut events = Vec::new();
        world.add_events(&chain.scope, &mut events);
        if events.is_empty() {
            return (length, None);
        }
        let event = events.swap_remove(random.random_range(0..events.len()));
        let mut next = world.clone();
        let line = Chain::line(&world, &event);
        if !next.happens(&chain.scope, event) {
            continue;
        }
        lines.push(line);
        world = next;
        if let Some(rule) = Rule::value_variants().iter().find(|rule| world.ledger.has_broken(**rule)) {
            return (length, Some((*rule, lines)));
        }
    }
    let comes_to_rest = chain.comes_to_rest(&world);
    (EVENTS, (!comes_to_rest).then_some((Rule::Rest, lines)))
}
