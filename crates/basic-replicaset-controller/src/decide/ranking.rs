use std::{cmp::Reverse, sync::Arc};

use super::Budget;
use crate::pod::PodRow;

/// The pods to delete now: what is above the wanted number, and old pods that others took over from.
///
/// The bounds are those of kube-controller-manager's Deployment: never fewer serving pods than the budget
/// allows, and an old pod that does not serve goes before one that does.
pub fn doomed(budget: &Budget, updated: &[Arc<PodRow>], outdated: &[Arc<PodRow>]) -> Vec<Arc<PodRow>> {
    let total = updated.len() + outdated.len();
    let excess =
        total.saturating_sub(budget.most(outdated.len())).max(updated.len().saturating_sub(budget.wanted));
    if excess > 0 {
        let by_readiness =
            |pods: &[Arc<PodRow>]| pods.iter().cloned().partition::<Vec<_>, _>(|pod| pod.is_ready());
        let ((ready, unready), (ready_new, unready_new)) = (by_readiness(outdated), by_readiness(updated));
        // What does not serve goes first, even if it is new: a rollout that is stuck must not cost those that serve.
        let mut doomed = first(excess, &unready, &unready_new);
        doomed.extend(first(excess - doomed.len(), &ready, &ready_new));
        return doomed;
    }
    let waiting = updated.iter().filter(|pod| !pod.is_ready()).count();
    let (ready, unready): (Vec<_>, Vec<_>) = outdated.iter().cloned().partition(|pod| pod.is_ready());
    let may_go = total.saturating_sub(budget.least() + waiting);
    let useless = first(may_go, &unready, &[]);
    let serving = ready.len() + updated.len() - waiting;
    let may_go = serving.saturating_sub(budget.least()).min(may_go - useless.len());
    let replaced = first(may_go, &ready, &[]);
    useless.into_iter().chain(replaced).collect()
}

/// The first `count` pods to go: of `before` sooner than of `after`; among them the unready, the cheap and the
/// new ones first.
fn first(count: usize, before: &[Arc<PodRow>], after: &[Arc<PodRow>]) -> Vec<Arc<PodRow>> {
    let rank =
        |pod: &Arc<PodRow>| (pod.is_ready(), pod.deletion_cost, Reverse(pod.created), pod.name.clone());
    let ranked = |pods: &[Arc<PodRow>]| {
        let mut pods = pods.to_vec();
        pods.sort_by_cached_key(rank);
        pods
    };
    ranked(before).into_iter().chain(ranked(after)).take(count).collect()
}
