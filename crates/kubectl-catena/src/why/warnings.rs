//! Events of type Warning about an object whose status has no reason.

use std::collections::HashSet;

use jiff::Timestamp;

use super::facts::{Facts, Warning};
use crate::{age::age, chain::Node};

/// More would hide the newest.
const MAX_WARNINGS: usize = 3;

/// The newest warnings of an object, the newest first, each of another reason.
pub fn newest(node: &Node, facts: &Facts) -> Vec<String> {
    let mut reasons = HashSet::new();
    let about = facts.surroundings.warnings.iter().rev().filter(|warning| warning.about == node.identity.uid);
    let newest = about.filter(|warning| reasons.insert(&warning.reason));
    newest.take(MAX_WARNINGS).map(|warning| text(warning, facts.now)).collect()
}

fn text(Warning { by, reason, message, at, .. }: &Warning, now: Timestamp) -> String {
    let by = Some(by.clone()).filter(|by| !by.is_empty());
    let ago = at.map(|at| format!("{} ago", age(now, at)));
    let source = by.into_iter().chain(ago).collect::<Vec<_>>().join(", ");
    let source = if source.is_empty() { source } else { format!(" ({source})") };
    format!("Warning {reason}{source}: {message}")
}

/// The message of an object, followed by those of its Events.
pub fn after(said: &str, node: &Node, facts: &Facts) -> String {
    let said = Some(said).filter(|said| !said.is_empty()).map(str::to_owned);
    said.into_iter().chain(newest(node, facts)).collect::<Vec<_>>().join("\n")
}
