//! What Events of type Warning say of an object whose status says nothing.

use std::collections::HashSet;

use jiff::Timestamp;

use super::facts::{Facts, Warning};
use crate::{age::age, chain::Node};

/// How many are told.
const TOLD: usize = 3;

/// The newest warnings of an object, the newest first, each of another reason.
pub fn newest(node: &Node, facts: &Facts) -> Vec<String> {
    let mut reasons = HashSet::new();
    let about = facts.around.warnings.iter().rev().filter(|warning| warning.about == node.identity.uid);
    let newest = about.filter(|warning| reasons.insert(&warning.reason));
    newest.take(TOLD).map(|warning| tell(warning, facts.now)).collect()
}

fn tell(Warning { by, reason, message, at, .. }: &Warning, now: Timestamp) -> String {
    let by = Some(by.clone()).filter(|by| !by.is_empty());
    let ago = at.map(|at| format!("{} ago", age(now, at)));
    let whence = by.into_iter().chain(ago).collect::<Vec<_>>().join(", ");
    let whence = if whence.is_empty() { whence } else { format!(" ({whence})") };
    format!("Warning {reason}{whence}: {message}")
}

/// What an object says, and what Events say of it.
pub fn after(said: &str, node: &Node, facts: &Facts) -> String {
    let said = Some(said).filter(|said| !said.is_empty()).map(str::to_owned);
    said.into_iter().chain(newest(node, facts)).collect::<Vec<_>>().join("\n")
}
