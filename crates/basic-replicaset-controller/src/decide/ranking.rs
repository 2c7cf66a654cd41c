use std::{cmp::Reverse, sync::Arc};

use super::Budget;
use crate::pod::PodRow;

/// The pods to delete now: those above the desired number, and old pods that were replaced.
///
/// The bounds are those of kube-controller-manager's Deployment: never fewer serving pods than the budget allows, and
/// an old pod that does not serve goes before one that does. Pods that cannot be deleted now do not hold up others:
/// surplus ones keep their turn, and `stubborn` ones, whose deletion failed before, are retried as soon as enough other
/// pods serve.
pub fn doomed(
    budget: &Budget,
    updated: &[Arc<PodRow>],
    outdated: &[Arc<PodRow>],
    stubborn: &[Arc<PodRow>],
    may_go: impl Fn(&Arc<PodRow>) -> bool,
) -> Vec<Arc<PodRow>> {
    let total = updated.len() + outdated.len();
    let excess =
        total.saturating_sub(budget.most(outdated.len())).max(updated.len().saturating_sub(budget.wanted));
    if excess > 0 {
        let ((ready, unready), (ready_new, unready_new)) = (by_readiness(outdated), by_readiness(updated));
        // Pods that do not serve go first, even new ones: a stuck rollout must not cost serving pods.
        let mut doomed = first(excess, &unready, &unready_new);
        doomed.extend(first(excess - doomed.len(), &ready, &ready_new));
        doomed.retain(&may_go);
        if !doomed.is_empty() {
            return doomed;
        }
    }
    let (again, useless_again) = by_readiness(stubborn);
    let (ready, unready) = by_readiness(outdated);
    let waiting = updated.iter().filter(|pod| !pod.is_ready()).count();
    let serving = again.len() + ready.len() + updated.len() - waiting;
    let spare = total.saturating_sub(budget.least() + waiting);
    let useless = first(spare, &unready, &[]);
    let dispensable = serving.saturating_sub(budget.least());
    let replaced = first(dispensable.min(spare - useless.len()), &ready, &[]);
    let again = first(dispensable - replaced.len(), &again, &[]);
    let doomed = useless_again.into_iter().chain(again).chain(useless).chain(replaced);
    doomed.filter(may_go).collect()
}

/// Splits pods into those that serve and those that do not.
fn by_readiness(pods: &[Arc<PodRow>]) -> (Vec<Arc<PodRow>>, Vec<Arc<PodRow>>) {
    pods.iter().cloned().partition(|pod| pod.is_ready())
}

/// The first `count` pods to delete: those of `before` precede those of `after`; within each, unready, cheap and new
/// ones come first.
fn first(count: usize, before: &[Arc<PodRow>], after: &[Arc<PodRow>]) -> Vec<Arc<PodRow>> {
    // Most passes delete nothing, and need no order.
    if count == 0 {
        return Vec::new();
    }
    let rank =
        |pod: &Arc<PodRow>| (pod.is_ready(), pod.deletion_cost, Reverse(pod.created), pod.name.clone());
    let ranked = |pods: &[Arc<PodRow>]| {
        let mut pods = pods.to_vec();
        pods.sort_by_cached_key(rank);
        pods
    };
    ranked(before).into_iter().chain(ranked(after)).take(count).collect()
}
