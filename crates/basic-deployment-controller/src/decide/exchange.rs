//! The exchange of former children for the wanted one: how many replicas each of them is to have meanwhile.
//!
//! Former children keep what the wanted one does not serve yet; the wanted one gets the room that they leave. Both follow from
//! the present numbers alone, so that an exchange goes on after a crash, and turns around with the rendering.

use std::{cmp::Reverse, sync::Arc};

use crate::{
    budget::{Budget, Count},
    child::Child,
    decide::action::Action,
    desired::Desired,
    observed::Observed,
    restarts,
};

/// The replicas of the wanted child, or of the one that a rollback makes the wanted one; `None` is one to be created.
#[must_use]
pub fn share_of_wanted(wanted: Option<&Arc<Child>>, observed: &Observed) -> i32 {
    let is_other = |child: &&Arc<Child>| wanted.is_none_or(|wanted| wanted.uid != child.uid);
    let former = Count::of_any(observed.children().filter(is_other).filter(|child| !child.is_deleting));
    Budget::of(&observed.deployment.spec).of_wanted(Count::of_all(wanted), former)
}

/// The former child whose replicas are to change next, and their number.
#[must_use]
pub fn next_former(observed: &Observed) -> Option<(&Arc<Child>, i32)> {
    let wanted = observed.child.ours().filter(|child| !child.is_deleting);
    let former = Count::of_all(observed.former_children());
    let all = Budget::of(&observed.deployment.spec).of_former(former, wanted.map(|child| Count::of(child)));
    let more = all.saturating_sub(former.desired);
    let writable = observed.former_children().filter(|child| child.outputs.problem.is_none());
    match more {
        0 => None,
        1.. => {
            let child = writable.max_by_key(|child| (Count::of(child).serving, Reverse(&child.name)))?;
            Some((child, Count::of(child).desired.saturating_add(more)))
        }
        _ => {
            let has_any = writable.filter(|child| Count::of(child).desired > 0);
            // A replica that does not serve is not missed.
            let child = has_any.max_by_key(|child| (Count::of(child).idle(), Reverse(&child.name)))?;
            let count = Count::of(child);
            let fewer = if count.idle() > 0 { count.idle() } else { count.desired }.min(-more);
            Some((child, count.desired - fewer))
        }
    }
}

/// Creates a child, with the replicas that there is room for beside former ones.
pub fn create(desired: &Desired, observed: &Observed) -> Action {
    let token = restarts::token_of_new(&desired.kind, observed);
    Action::Create { desired: desired.clone().under(token), replicas: share_of_wanted(None, observed) }
}

/// Changes a child to a rendering.
pub fn change(child: &Arc<Child>, desired: &Desired, observed: &Observed, heals: bool) -> Action {
    let replicas = share_of_wanted(Some(child), observed);
    Action::Apply { child: child.clone(), desired: desired.clone(), replicas, heals }
}
