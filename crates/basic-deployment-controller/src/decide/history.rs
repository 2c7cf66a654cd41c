//! Stores and prunes revisions.

use std::collections::HashSet;

use crate::{decide::action::Action, desired::Desired, observed::Observed, revision::find};

/// Stores the next rendering of the child before the child is changed to it, as the revision with the highest number. Revisions
/// that were left behind come before it, because they have numbers.
pub fn record(desired: &Desired, observed: &Observed) -> Option<Action> {
    if !observed.orphans.is_empty() {
        return Some(Action::Adopt(observed.orphans.clone()));
    }
    if let Some(revision) = find(&observed.revisions, &desired.hash) {
        // One that comes back is the last one again.
        let is_last = observed.revisions.last().is_some_and(|last| last.uid == revision.uid);
        let (revision, number) = (revision.clone(), next_number(observed));
        return (!is_last).then_some(Action::Renumber { revision, number });
    }
    // A rendering that a rollback holds has a revision, or is refused.
    let rendered = observed.rendered.as_ref().ok().filter(|rendered| rendered.hash == desired.hash)?;
    Some(Action::Record { rendered: rendered.clone(), number: next_number(observed) })
}

fn next_number(observed: &Observed) -> i64 {
    observed.revisions.last().map_or(1, |last| last.number.saturating_add(1))
}

/// Deletes the oldest revisions beyond the limit, except those that are wanted or live.
pub fn prune(observed: &Observed) -> Option<Action> {
    // The last revision says which child may still run.
    if observed.unlisted.is_some() {
        return None;
    }
    let mut kept: HashSet<&str> = observed.children().map(|child| child.hash()).collect();
    kept.extend(observed.wanted_hash());
    kept.extend(observed.pin.as_ref().map(|pin| pin.hash.as_str()));
    kept.extend(observed.rendered.as_ref().ok().map(|rendered| rendered.hash.as_str()));
    let old: Vec<_> =
        observed.revisions.iter().filter(|revision| !kept.contains(revision.hash.as_str())).collect();
    let limit = usize::try_from(observed.deployment.spec.revision_history_limit).unwrap_or(0);
    // Revisions that are kept anyway, except the wanted one, count as old ones too.
    let all_old = observed.revisions.len().saturating_sub(1);
    let surplus = all_old.saturating_sub(limit).min(old.len());
    let surplus: Vec<_> =
        old.into_iter().take(surplus).filter(|revision| !revision.is_deleting).cloned().collect();
    if surplus.is_empty() { None } else { Action::Prune(surplus).unless_held(observed) }
}
