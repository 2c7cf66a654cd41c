//! Keeps the child in its desired state.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    child::{Child, projection},
    decide::{
        action::Action,
        exchange::{next_former, share_of_wanted},
        history,
    },
    desired::Desired,
    drift,
    handed::Handed,
    observed::{Found, Observed},
    revision::find,
    step,
};

/// Stores the next rendering, unless its child is going. Where somebody else has its name, a rollback leads away from it.
pub fn record(observed: &Observed) -> Option<Action> {
    let desired = observed.desired.as_ref().ok()?;
    let may_be_written = match &observed.child {
        Found::Ours(child) => !child.is_deleting,
        found => !matches!(found, Found::Leaving(_)),
    };
    let is_held = observed.backoffs.is_backing_off(step::FOLLOW) || observed.unlisted.is_some();
    let may = may_be_written && !is_held && !observed.deployment.spec.paused;
    history::record(desired, observed).filter(|_| may)
}

/// Creates, adopts, changes or heals the child.
pub fn keep(desired: &Desired, observed: &Observed) -> Option<Action> {
    let is_paused = observed.deployment.spec.paused;
    // No other child is made the wanted one beside one that may still run, but is not seen.
    if let Some(refusal) = &observed.unlisted {
        let scaled = observed.child.ours().and_then(|child| scale(child, observed));
        return scaled.or_else(|| Action::Refuse(refusal.clone()).unless_held(observed));
    }
    match &observed.child {
        Found::Nothing if is_paused => None,
        Found::Nothing => {
            let replicas = share_of_wanted(None, observed);
            Action::Create { desired: desired.clone(), replicas }.unless_held(observed)
        }
        // Its end comes first.
        Found::Ours(child) if child.is_deleting => None,
        Found::Leaving(_) => None,
        Found::Ours(child) if is_paused => scale(child, observed),
        Found::Ours(child) => align(child, desired, observed)
            .or_else(|| restart(child, observed))
            .or_else(|| scale(child, observed)),
        // Somebody removed its owner reference, or a deletion without its dependents has left it.
        Found::Orphan(child) if child.is_adoptable_as(&desired.hash) => {
            change(child, desired, observed, true)
        }
        Found::Orphan(child) | Found::Foreign(child) => {
            history::prune(observed).or_else(|| Action::Refuse(child.refused()).unless_held(observed))
        }
    }
}

/// Applies a new rendering at once, and undoes changes by somebody else, unless the server itself changes the applied
/// object.
fn align(child: &Arc<Child>, desired: &Desired, observed: &Observed) -> Option<Action> {
    // Without its hash, it is no former rendering: somebody removed the annotation.
    if child.hash() != desired.hash && !child.hash().is_empty() {
        return change(child, desired, observed, false);
    }
    // What it was handed before is no change by somebody else.
    let is_handed = desired.handed.is_recorded_on(child);
    let rendered = desired.comparable();
    let seen = projection(&rendered, &child.object);
    let is_as = |wanted: &Value| drift::means_the_same(wanted, &seen);
    let has_drifted = !is_as(&rendered) && !observed.settled_as.as_ref().is_some_and(is_as);
    let heal = if is_handed && has_drifted { change(child, desired, observed, true) } else { None };
    heal.or_else(|| {
        let (field, patch) = drift::added_keys(child, desired)?;
        Action::Strip { child: child.clone(), field, patch }.unless_held(observed)
    })
}

/// Changes a child to a rendering.
fn change(child: &Arc<Child>, desired: &Desired, observed: &Observed, heals: bool) -> Option<Action> {
    let replicas = share_of_wanted(Some(child), observed);
    let desired = Desired { token: new_token(child, observed), ..desired.clone() };
    Action::Apply { child: child.clone(), desired, replicas, heals }.unless_held(observed)
}

/// Hands the restart token to the child.
pub fn restart(child: &Arc<Child>, observed: &Observed) -> Option<Action> {
    let token = new_token(child, observed)?;
    Action::Restart { child: child.clone(), token }.unless_held(observed)
}

/// The restart token that a child may be handed now; without one, it keeps its own.
fn new_token(child: &Child, observed: &Observed) -> Option<String> {
    let may = !child.is_deleting && !observed.deployment.spec.paused;
    observed.token_for(child).filter(|_| may).map(str::to_owned)
}

/// Sets the replicas of the wanted child and the fields that are handed to it, and undoes changes of them by somebody else.
pub fn scale(child: &Arc<Child>, observed: &Observed) -> Option<Action> {
    let replicas = share_of_wanted(Some(child), observed);
    let heals = heals_scale(child, replicas, observed)?;
    Action::Scale { child: child.clone(), replicas, heals, is_former: false }.unless_held(observed)
}

/// Whether setting a child's replicas and the fields that are handed to it undoes a change by somebody else; `None` if it has
/// them.
fn heals_scale(child: &Child, replicas: i32, observed: &Observed) -> Option<bool> {
    if child.replicas() != Some(replicas) {
        return Some(observed.given_replicas.get(&child.uid) == Some(&replicas));
    }
    let handed = Handed::of(&observed.deployment.spec, &child.kind);
    let is_new = !handed.is_recorded_on(child);
    (is_new || handed.changed_on(child).is_some()).then_some(!is_new)
}

/// Scales a former child, which serves until the wanted one does.
pub fn scale_former(observed: &Observed) -> Option<Action> {
    if observed.is_served() {
        return None;
    }
    // Those that keep their share are handed fields, too: only by its policy does one report the ends of its replicas.
    let readable = observed.former_children().filter(|child| child.is_readable());
    let kept = readable.filter_map(|child| Some((child, child.replicas()?)));
    let mut shares = next_former(observed).into_iter().chain(kept);
    let (child, replicas, heals) = shares
        .find_map(|(child, replicas)| Some((child, replicas, heals_scale(child, replicas, observed)?)))?;
    Action::Scale { child: child.clone(), replicas, heals, is_former: true }.unless_held(observed)
}

/// Deletes former children when the wanted one serves, and before that those that are spent.
pub fn clean_up(observed: &Observed) -> Option<Action> {
    let is_served = observed.is_served();
    let may_go = |child: &&Arc<Child>| is_served || is_spent(child, observed);
    let former: Vec<_> = observed.former_children().filter(may_go).cloned().collect();
    if former.is_empty() { None } else { Action::Delete(former).unless_held(observed) }
}

/// Whether a former child is empty and has never served. All former children go when the wanted one serves, so that only the one
/// with the oldest revision may have served.
fn is_spent(child: &Child, observed: &Observed) -> bool {
    let may_run = !child.is_readable() || !child.is_current() || child.outputs.active > 0;
    let number = |child: &Child| find(&observed.revisions, child.hash()).map(|revision| revision.number);
    child.replicas() == Some(0)
        && !may_run
        && observed.former_children().any(|other| number(other) < number(child))
}
