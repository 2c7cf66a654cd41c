//! Old pods are replaced within the budget.

use std::collections::BTreeMap;

use catena_api::PodReplacementPolicy;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use operator_kit::report::Conditions;
use proptest::prelude::*;

use super::*;

#[test]
fn what_is_over_the_number_goes_unready_first_then_cheap_then_new() {
    let mut pods = vec![
        pod(0, NEW, PodState::Ready),
        pod(1, NEW, PodState::Ready),
        pod(2, NEW, starting()),
        pod(3, NEW, PodState::Ready),
    ];
    Arc::make_mut(&mut pods[1]).deletion_cost = -1;
    Arc::make_mut(&mut pods[3]).created = ago(1);
    assert_eq!(deleted(&decide(&observed(1, pods))), ["web-2", "web-1", "web-3"]);
}

#[test]
fn a_replacement_goes_step_by_step_within_the_budget() {
    // 4 desired: one in addition, one missing.
    let old = |slot| pod(slot, OLD, PodState::Ready);
    let all_old = observed(4, (0..4).map(old).collect());
    assert_eq!(deleted(&decide(&all_old)).len(), 1, "one may be missing");
    let three_old = observed(4, (0..3).map(old).collect());
    assert_eq!(created(&decide(&three_old)), [3, 4], "one in its place and one on top");
    let waiting =
        observed(4, (0..3).map(old).chain([pod(3, NEW, starting()), pod(4, NEW, starting())]).collect());
    assert!(matches!(decide(&waiting), Action::WriteStatus(_)), "three must serve");
    let taken_over = observed(
        4,
        (0..3).map(old).chain([pod(3, NEW, PodState::Ready), pod(4, NEW, PodState::Ready)]).collect(),
    );
    assert_eq!(deleted(&decide(&taken_over)).len(), 2);
}

#[test]
fn old_pods_that_do_not_serve_go_first_when_a_bad_template_is_mended() {
    let pods = vec![
        pod(0, OLD, PodState::Ready),
        pod(1, OLD, PodState::Ready),
        pod(2, OLD, PodState::Ready),
        pod(3, OLD, stuck("ImagePullBackOff")),
    ];
    assert_eq!(deleted(&decide(&observed(4, pods))), ["web-3"]);
}

#[test]
fn scaling_down_in_the_middle_of_a_bad_rollout_keeps_what_serves() {
    let bad = (0..5).map(|slot| pod(slot, NEW, stuck("ImagePullBackOff")));
    let good = (5..13).map(|slot| pod(slot, OLD, PodState::Ready));
    let observed = observed(4, bad.chain(good).collect());
    let doomed = deleted(&decide(&observed));
    let left =
        observed.pods.iter().filter(|pod| pod.is_ready() && !doomed.contains(&pod.name.to_string())).count();
    assert!(left >= 3, "{left} of 4 serve");
}

#[test]
fn a_changed_number_of_replicas_needs_no_template_to_shrink() {
    let mut observed = observed(1, vec![pod(0, OLD, PodState::Ready), pod(1, OLD, PodState::Ready)]);
    observed.revision = Err(TemplateError::unknown("x", ""));
    assert_eq!(deleted(&decide(&observed)).len(), 1);
    observed.pods.truncate(0);
    assert!(matches!(decide(&observed), Action::Refuse(_)));
}

/// A cluster that performs all actions, and in which pods become ready one after another.
fn play(mut observed: Observed, disturb: &[u8]) -> (Observed, usize) {
    let budget = Budget::of(&observed.set.spec);
    let start = observed.pods.iter().filter(|pod| pod.is_ready()).count();
    let is_awaited = observed.awaited().is_some();
    for step in 0..2_000 {
        match decide(&observed) {
            Action::Create { revision, slots } => {
                let is_there = |pod: &&Arc<PodRow>| {
                    pod.counts() || (is_awaited && matches!(pod.state, PodState::Terminating(_)))
                };
                let total = observed.pods.iter().filter(is_there).count() + slots.len();
                assert!(total <= budget.wanted + budget.surge, "{total} pods");
                observed.pods.extend(slots.into_iter().map(|slot| pod(slot, &revision, starting())));
            }
            Action::Delete(pods) => {
                let is_doomed = |pod: &&mut Arc<PodRow>| pods.iter().any(|doomed| doomed.uid == pod.uid);
                for pod in observed.pods.iter_mut().filter(is_doomed) {
                    Arc::make_mut(pod).state = PodState::Terminating(now());
                }
                let ready = observed.pods.iter().filter(|pod| pod.is_ready()).count();
                assert!(ready >= budget.least().min(start), "{ready} pods serve");
            }
            Action::WriteStatus(status) => {
                Arc::make_mut(&mut observed.set).status = Some(*status);
            }
            Action::Settle | Action::Wait(_) => {
                let mut pods = observed.pods.iter();
                if let Some(ends) = pods.position(|pod| matches!(pod.state, PodState::Terminating(_))) {
                    observed.pods.remove(ends);
                    continue;
                }
                let kick = usize::from(*disturb.get(step % disturb.len().max(1)).unwrap_or(&0));
                let Some(next) =
                    (0..observed.pods.len()).map(|place| (place + kick) % observed.pods.len()).find(
                        |&place| !observed.pods[place].is_ready() && &*observed.pods[place].revision == NEW,
                    )
                else {
                    return (observed, step);
                };
                Arc::make_mut(&mut observed.pods[next]).state = PodState::Ready;
            }
            action => panic!("{action:?}"),
        }
    }
    panic!("it never came to rest");
}

proptest! {
    /// For any initial pods, and any order in which pods become ready, it ends with the desired pods of the new
    /// template, and there are never too many or too few on the way.
    #[test]
    fn every_replacement_ends_and_keeps_to_its_budget(
        replicas in 0..12i32,
        old in proptest::collection::vec(any::<bool>(), 0..12),
        surge in 0..4i32,
        unavailable in 0..4i32,
        is_awaited in any::<bool>(),
        disturb in proptest::collection::vec(any::<u8>(), 1..8),
    ) {
        let old: Vec<_> = old.into_iter().take(usize::try_from(replicas).unwrap()).collect();
        let pods = old.iter().zip(0..).map(|(ready, slot)| pod(slot, OLD, if *ready { PodState::Ready } else { stuck("CrashLoopBackOff") }));
        let mut observed = observed(replicas, pods.collect());
        let set = Arc::make_mut(&mut observed.set);
        set.spec.max_surge = IntOrString::Int(surge);
        set.spec.max_unavailable = IntOrString::Int(unavailable);
        set.spec.parameters = BTreeMap::new();
        if is_awaited {
            set.spec.pod_replacement_policy = PodReplacementPolicy::TerminationComplete;
        }
        let (end, _) = play(observed, &disturb);
        prop_assert_eq!(end.pods.len(), usize::try_from(replicas).unwrap());
        prop_assert!(end.pods.iter().all(|pod| pod.is_ready() && &*pod.revision == NEW));
        prop_assert!(Conditions::is_true(&end.set.status.clone().unwrap().conditions, Conditions::READY));
    }
}
