//! Whether a revision has proven itself: as many of its pods as one step of the budget replaces are available at once.
//!
//! That is recorded in the status, by the write that reports it: only there does it outlive both this process and all of the
//! pods, and nobody who may only edit the set can forge it. From then on, the revision counts as proven whatever becomes of
//! its pods, and its rendering is at hand for as long as the next one has not proven itself.

use std::sync::Arc;

use super::{Budget, Pods};
use crate::{observed::Observed, pod::PodRow};

/// The present revision, if it has proven itself and is not recorded.
#[must_use]
pub fn newly_proven(observed: &Observed) -> Option<&str> {
    let recorded = observed.set.status.as_ref().and_then(|status| status.last_served.as_ref());
    let revision = observed.revision.as_deref().ok()?;
    let is_new = recorded.is_none_or(|recorded| recorded.revision != revision);
    (is_new && has_proven_itself(observed, revision)).then_some(revision)
}

/// The revision that served last, as long as the present one has not proven itself.
#[must_use]
pub fn former(observed: &Observed) -> Option<&str> {
    let is_proven = || observed.revision.as_ref().is_ok_and(|revision| has_proven_itself(observed, revision));
    observed.former.as_deref().filter(|_| !is_proven())
}

/// Whether pods may have to be made from the record of the revision that served last.
#[must_use]
pub fn may_make_former(observed: &Observed) -> bool {
    observed.revision.is_err() || Pods::of(observed, &Budget::of(&observed.set.spec)).missing_former > 0
}

fn has_proven_itself(observed: &Observed, revision: &str) -> bool {
    let serves = |pod: &&Arc<PodRow>| *pod.revision == *revision && observed.is_available(pod);
    observed.pods.iter().filter(serves).count() >= Budget::of(&observed.set.spec).step()
}
