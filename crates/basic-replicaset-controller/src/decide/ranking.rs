//! Which pods are deleted, and in which order.

use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use jiff::Timestamp;

use super::{BATCH, Budget, Pods};
use crate::{observed::Observed, pod::PodRow};

/// The pods to delete now: those above the desired number, and old pods that were replaced.
///
/// The bounds are those of kube-controller-manager's Deployment: never fewer serving pods than the budget allows, and
/// an old pod that does not serve goes before one that does. Pods that cannot be deleted now do not hold up others:
/// surplus ones keep their turn, and `stubborn` ones, whose deletion failed before, are retried as soon as enough other
/// pods serve.
pub fn doomed(
    observed: &Observed,
    budget: &Budget,
    pods: &Pods<'_>,
    may_go: impl Fn(&Arc<PodRow>) -> bool,
) -> Vec<Arc<PodRow>> {
    let Pods { updated, outdated, stubborn, former, missing_former } = pods;
    let is_available = |pod: &Arc<PodRow>| observed.is_available(pod);
    let by_availability =
        |pods: &[Arc<PodRow>]| -> (Vec<_>, Vec<_>) { pods.iter().cloned().partition(is_available) };
    let (ready, unready) = by_availability(outdated);
    // Those of the revision that served last are about to serve again.
    let (last, useless): (Vec<_>, Vec<_>) =
        unready.into_iter().partition(|pod| *former == Some(&*pod.revision));
    let total = pods.total();
    let excess = (total + missing_former)
        .saturating_sub(budget.most(pods.old()))
        .max(updated.len().saturating_sub(budget.wanted));
    if excess > 0 {
        let (ready_new, unready_new) = by_availability(updated);
        // Pods that do not serve go first, even new ones: a stuck rollout must not cost serving pods.
        let mut doomed = first(observed, excess, &[&useless, &unready_new, &last, &ready, &ready_new]);
        doomed.retain(&may_go);
        if !doomed.is_empty() {
            return doomed;
        }
    }
    let (again, useless_again) = by_availability(stubborn);
    let waiting = updated.iter().filter(|pod| !is_available(pod)).count();
    let serving = again.len() + ready.len() + updated.len() - waiting;
    let spare = total.saturating_sub(budget.least() + waiting);
    let useless = first(observed, spare, &[&useless, &last]);
    let dispensable = serving.saturating_sub(budget.least());
    let replaced = first(observed, dispensable.min(spare - useless.len()), &[&ready]);
    let again = first(observed, dispensable - replaced.len(), &[&again]);
    let doomed = useless_again.into_iter().chain(again).chain(useless).chain(replaced);
    doomed.filter(may_go).take(BATCH).collect()
}

/// The first `count` pods to delete: each group before the next one.
fn first(observed: &Observed, count: usize, groups: &[&[Arc<PodRow>]]) -> Vec<Arc<PodRow>> {
    // Most passes delete nothing, and need no order.
    if count == 0 {
        return Vec::new();
    }
    let mut on_node: HashMap<&str, usize> = HashMap::new();
    for pod in observed.pods.iter().filter(|pod| pod.counts()) {
        *on_node.entry(&pod.node).or_default() += 1;
    }
    let ranked = |group: &&[Arc<PodRow>]| {
        let mut group = group.to_vec();
        group.sort_by(|one, other| deletion_order(one, other, &on_node, observed.now));
        group
    };
    groups.iter().flat_map(ranked).take(count).collect()
}

/// The order in which kube-controller-manager deletes the pods of a ReplicaSet (its `ActivePodsWithRanks`): those without a
/// node, by phase, those that are not ready, by deletion cost, those with more pods of the set on their node, those that have
/// been ready for less time, those with more restarts, the newest.
fn deletion_order(one: &PodRow, other: &PodRow, on_node: &HashMap<&str, usize>, now: Timestamp) -> Ordering {
    let crowd = |pod: &PodRow| on_node.get(&*pod.node).copied();
    // By its binary logarithm: mere seconds among hours make no difference.
    let ready_for = |pod: &PodRow| now.duration_since(pod.ready_since?).as_nanos().checked_ilog2();
    let is_assigned = |pod: &PodRow| !pod.node.is_empty();
    is_assigned(one)
        .cmp(&is_assigned(other))
        .then_with(|| one.phase.cmp(&other.phase))
        .then_with(|| one.is_ready().cmp(&other.is_ready()))
        .then_with(|| one.deletion_cost.cmp(&other.deletion_cost))
        .then_with(|| crowd(other).cmp(&crowd(one)))
        .then_with(|| ready_for(one).cmp(&ready_for(other)))
        .then_with(|| other.restarts.cmp(&one.restarts))
        .then_with(|| other.created.cmp(&one.created))
        .then_with(|| one.uid.cmp(&other.uid))
}
