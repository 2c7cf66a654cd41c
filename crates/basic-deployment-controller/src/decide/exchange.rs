//! The exchange of former children for the wanted one: how many replicas each of them is to have meanwhile.
//!
//! Former children keep what the wanted one does not serve yet; the wanted one gets the room that they leave. Both follow from
//! the present numbers alone, so that an exchange goes on after a crash, and turns around with the rendering. A former child
//! whose outputs cannot be read is not written to, counts for neither service nor room, and goes when the wanted one serves.

use std::{cmp::Reverse, sync::Arc};

use crate::{
    budget::{Budget, Count},
    child::Child,
    observed::Observed,
};

/// The replicas of the wanted child; `None` is one to be created.
#[must_use]
pub fn share_of_wanted(wanted: Option<&Arc<Child>>, observed: &Observed) -> i32 {
    let is_other = |child: &&Arc<Child>| wanted.is_none_or(|wanted| wanted.uid != child.uid);
    let others =
        observed.children().filter(is_other).filter(|child| !child.is_deleting && child.is_readable());
    let former = Count::of_any(others);
    let (budget, count) = (Budget::of(&observed.deployment.spec), Count::of_all(wanted));
    // Replicas of others have their room until they are gone, if that is awaited.
    let ending = observed.awaited().filter(is_other).map(|child| child.ending().unwrap_or(i32::MAX));
    let left = Budget { most: budget.most - ending.fold(0, i32::saturating_add), ..budget };
    budget.of_wanted(count, former).min(left.of_wanted(count, former).max(count.desired))
}

/// The former child whose replicas are to change next, and their number.
#[must_use]
pub fn next_former(observed: &Observed) -> Option<(&Arc<Child>, i32)> {
    let wanted = observed.child.ours().filter(|child| !child.is_deleting);
    let readable = || observed.former_children().filter(|child| child.is_readable());
    let former = Count::of_all(readable());
    let all = Budget::of(&observed.deployment.spec).of_former(former, wanted.map(|child| Count::of(child)));
    let more = all.saturating_sub(former.desired);
    match more {
        0 => None,
        1.. => {
            let child = readable().max_by_key(|child| (Count::of(child).serving, Reverse(&child.name)))?;
            Some((child, Count::of(child).desired.saturating_add(more)))
        }
        _ => {
            let has_any = readable().filter(|child| Count::of(child).desired > 0);
            // A replica that does not serve is not missed. The child that serves least is emptied first, so that few are left.
            let child = has_any.max_by_key(|child| {
                let count = Count::of(child);
                (count.idle() > 0, Reverse(count.serving), Reverse(count.desired), Reverse(&child.name))
            })?;
            let count = Count::of(child);
            let fewer = if count.idle() > 0 { count.idle() } else { count.desired }.min(-more);
            Some((child, count.desired - fewer))
        }
    }
}
