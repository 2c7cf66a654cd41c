//! Pods are deleted in the order of a ReplicaSet: each rule, where all later ones say the opposite.

use super::*;

/// A pod that has been ready for an hour, with a change.
fn with(slot: u32, change: impl FnOnce(&mut PodRow)) -> Arc<PodRow> {
    let mut pod = pod(slot, NEW, PodState::Ready);
    let row = Arc::make_mut(&mut pod);
    (row.node, row.ready_since) = ("a".into(), Some(ago(3600)));
    change(row);
    pod
}

/// The pod that goes when one is too many.
fn first_of(pods: Vec<Arc<PodRow>>) -> String {
    let wanted = i32::try_from(pods.len() - 1).unwrap();
    deleted(&decide(&observed(wanted, pods))).concat()
}

#[test]
fn a_pod_without_a_node_goes_before_one_that_starts() {
    let on = |slot, node: &str, cost| {
        with(slot, |pod| {
            (pod.state, pod.phase) = (starting(), Phase::Pending);
            (pod.node, pod.deletion_cost) = (node.into(), cost);
        })
    };
    assert_eq!(first_of(vec![on(1, "a", -9), on(0, "", 0)]), "web-0");
}

#[test]
fn a_pending_pod_goes_before_one_of_a_silent_node_and_that_before_a_running_one() {
    let of = |slot, phase, cost| {
        with(slot, |pod| (pod.state, pod.phase, pod.deletion_cost) = (starting(), phase, cost))
    };
    assert_eq!(first_of(vec![of(1, Phase::Unknown, -9), of(0, Phase::Pending, 0)]), "web-0");
    assert_eq!(first_of(vec![of(1, Phase::Running, -9), of(0, Phase::Unknown, 0)]), "web-0");
}

#[test]
fn a_pod_that_is_not_ready_goes_before_one_that_is() {
    let starts = with(0, |pod| (pod.state, pod.ready_since) = (starting(), None));
    assert_eq!(first_of(vec![with(1, |pod| pod.deletion_cost = -9), starts]), "web-0");
}

#[test]
fn a_cheap_pod_goes_before_those_of_a_crowded_node() {
    let cheap = with(0, |pod| (pod.node, pod.deletion_cost) = ("b".into(), -1));
    assert_eq!(first_of(vec![with(1, |_| ()), with(2, |_| ()), cheap]), "web-0");
}

#[test]
fn a_crowded_node_loses_its_pods_before_those_that_have_just_become_ready() {
    let on_a = |slot| with(slot, |_| ());
    let on_b = |slot| with(slot, |pod| (pod.node, pod.ready_since) = ("b".into(), Some(ago(2))));
    let pods = (0..4).map(on_a).chain((4..6).map(on_b)).collect();
    assert_eq!(deleted(&decide(&observed(3, pods))), ["web-0", "web-1", "web-2"], "one stays beside two");
}

#[test]
fn a_pod_that_has_just_become_ready_goes_before_one_that_has_served_for_long() {
    let young = with(0, |pod| pod.ready_since = Some(ago(2)));
    let restarted = with(1, |pod| (pod.restarts, pod.created) = (9, ago(1)));
    assert_eq!(first_of(vec![restarted, young]), "web-0");
}

#[test]
fn a_pod_with_more_restarts_goes_first_also_if_it_has_been_ready_for_a_little_longer() {
    let restarted = with(0, |pod| (pod.restarts, pod.ready_since) = (9, Some(ago(3700))));
    assert_eq!(first_of(vec![with(1, |pod| pod.created = ago(1)), restarted]), "web-0");
    let crash_loops = with(0, |pod| (pod.state, pod.restarts) = (stuck("CrashLoopBackOff"), 9));
    assert_eq!(first_of(vec![with(1, |pod| pod.state = starting()), crash_loops]), "web-0");
}

#[test]
fn the_newest_goes_first_of_equal_ones() {
    assert_eq!(first_of(vec![with(1, |_| ()), with(0, |pod| pod.created = ago(1))]), "web-0");
}
