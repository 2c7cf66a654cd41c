//! A failure holds up only its own item.

use catena_api::reason::DELETE_REFUSED;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use operator_kit::report::Conditions;
use proptest::prelude::*;

use super::*;
use crate::observed::MAX_FAILED_ITEMS;

fn without(held_up: Backoffs) -> Backoffs {
    held_up
}

/// A pod that cannot be deleted, or (`is_due`) is due for a retry.
fn refused(slot: u32, is_due: bool) -> Backoffs {
    let pod = format!("pod-{slot}");
    let held_up = Backoffs::default();
    without(if is_due {
        held_up.and_due(step::DELETE, &pod, failure("DeleteRefused"))
    } else {
        held_up.and_item(step::DELETE, &pod, failure("DeleteRefused"))
    })
}

fn serving(slots: std::ops::Range<u32>) -> Vec<Arc<PodRow>> {
    slots.map(|slot| pod(slot, NEW, PodState::Ready)).collect()
}

#[test]
fn a_place_whose_name_is_taken_is_passed_over() {
    let mut observed = observed(4, serving(1..3));
    assert_eq!(created(&decide(&observed)), [0, 3]);
    let taken = Backoffs::default().and_item(step::CREATE, "0", failure("PodNameTaken"));
    observed.backoffs = without(taken);
    assert_eq!(created(&decide(&observed)), [3, 4]);
    observed.backoffs = without(Backoffs::default().and_due(step::CREATE, "0", failure("PodNameTaken")));
    assert_eq!(created(&decide(&observed)), [0, 3], "it may be free by now");
}

#[test]
fn a_set_is_ready_whatever_names_are_taken() {
    let mut observed = observed(2, serving(1..3));
    observed.backoffs = without(Backoffs::default().and_item(step::CREATE, "0", failure("PodNameTaken")));
    let status = written(decide(&observed));
    assert!(Conditions::is_true(&status.conditions, Conditions::READY));
}

#[test]
fn names_that_are_all_taken_are_not_tried_for_ever() {
    let mut observed = observed(1, Vec::new());
    let taken = |count| {
        let slots = (0..count).map(|slot: usize| slot.to_string());
        without(slots.fold(Backoffs::default(), |held, slot| {
            held.and_item(step::CREATE, &slot, failure("PodNameTaken"))
        }))
    };
    observed.backoffs = taken(MAX_FAILED_ITEMS);
    assert_eq!(created(&decide(&observed)), [32]);
    observed.backoffs = taken(MAX_FAILED_ITEMS + 1);
    let status = written(decide(&observed));
    assert_eq!(status.blocked_by.unwrap().reason, "PodNameTaken");
}

#[test]
fn a_create_that_fails_holds_up_neither_deletes_nor_the_status() {
    let backoffs = without(Backoffs::default().and_step(step::CREATE, failure("QuotaExceeded")));
    let mut dead = pod(3, NEW, finished());
    Arc::make_mut(&mut dead).created = ago(20);
    let pods = serving(0..3).into_iter().chain([dead]).collect();
    let mut short = Observed { backoffs: backoffs.clone(), ..observed(6, pods) };
    assert_eq!(deleted(&decide(&short)), ["web-3"]);
    short.pods.pop();
    let status = written(decide(&short));
    assert_eq!((status.active, status.blocked_by.unwrap().reason.as_str()), (3, "QuotaExceeded"));
    let old = (0..4).map(|slot| pod(slot, OLD, PodState::Ready)).collect();
    let rollout = Observed { backoffs, ..observed(4, old) };
    assert_eq!(deleted(&decide(&rollout)).len(), 1, "one may be missing");
}

#[test]
fn a_delete_that_is_refused_stops_neither_other_deletes_nor_creates() {
    // Newer ones are deleted first.
    let mut observed = observed(3, serving(0..6));
    let first = deleted(&decide(&observed));
    assert_eq!(first.len(), 3);
    let slot: u32 = first[0].trim_start_matches("web-").parse().unwrap();
    observed.backoffs = refused(slot, false);
    assert_eq!(deleted(&decide(&observed)), first[1..], "no other goes in its stead");
    observed.pods.retain(|pod| !first[1..].contains(&pod.name.to_string()));
    let status = written(decide(&observed));
    assert_eq!(status.blocked_by.unwrap().reason, "DeleteRefused");
    assert!(!Conditions::is_true(&status.conditions, Conditions::READY));
    observed.pods.retain(|pod| *pod.name == *first[0]);
    assert_eq!(created(&decide(&observed)).len(), 2);
}

#[test]
fn a_delete_that_merely_failed_is_worth_no_additional_pod() {
    // One old pod goes at a time, and one new one may come on top.
    let mut pods: Vec<_> = (0..3).map(|slot| pod(slot, OLD, PodState::Ready)).collect();
    pods.push(pod(3, NEW, PodState::Ready));
    let after = |reason| {
        let held = Backoffs::default().and_item(step::DELETE, "pod-0", failure(reason));
        let mut observed = Observed { backoffs: without(held), ..observed(3, pods.clone()) };
        let spec = &mut Arc::make_mut(&mut observed.set).spec;
        (spec.max_surge, spec.max_unavailable) = (IntOrString::Int(1), IntOrString::Int(0));
        decide(&observed)
    };
    assert_eq!(created(&after(DELETE_REFUSED)).len(), 1, "the others are replaced beside it");
    let action = after("WriteFailed");
    assert!(!matches!(action, Action::Create { .. }), "{action:?}");
}

#[test]
fn pods_that_may_not_be_deleted_do_not_pile_up_from_one_template_to_the_next() {
    let mut pods: Vec<_> = (0..8).map(|slot| pod(slot, "0", PodState::Ready)).collect();
    let mut total = Vec::new();
    for template in ["1", "2", "3"] {
        let refused = |held: Backoffs, pod: &Arc<PodRow>| {
            held.and_item(step::DELETE, &pod.uid, failure("DeleteRefused"))
        };
        let backoffs = without(pods.iter().fold(Backoffs::default(), refused));
        let observed = Observed { backoffs, revision: Ok(template.into()), ..observed(8, pods.clone()) };
        match decide(&observed) {
            Action::Create { slots, .. } => {
                pods.extend(slots.into_iter().map(|slot| pod(slot, template, PodState::Ready)));
            }
            action => assert_eq!(written(action).blocked_by.unwrap().reason, "DeleteRefused"),
        }
        total.push(pods.len());
    }
    assert_eq!(total, [16, 18, 18]);
}

#[test]
fn pods_that_ended_and_may_not_be_deleted_do_not_pile_up() {
    let mut observed = observed(4, (0..4).map(|slot| pod(slot, NEW, finished())).collect());
    for _ in 0..4 {
        let refused = |held: Backoffs, pod: &Arc<PodRow>| {
            held.and_item(step::DELETE, &pod.uid, failure(DELETE_REFUSED))
        };
        observed.backoffs = without(observed.pods.iter().fold(Backoffs::default(), refused));
        match decide(&observed) {
            Action::Create { slots, .. } => {
                observed.pods.extend(slots.into_iter().map(|slot| pod(slot, NEW, finished())));
            }
            action => assert_eq!(written(action).blocked_by.unwrap().reason, DELETE_REFUSED),
        }
    }
    assert_eq!(observed.pods.len(), 9);
}

#[test]
fn of_a_pod_that_was_deleted_after_all_nobody_says_that_it_may_not_be() {
    let mut observed =
        observed(2, vec![pod(0, NEW, PodState::Ready), pod(1, NEW, stuck("CrashLoopBackOff"))]);
    observed.backoffs = refused(7, true);
    assert_eq!(written(decide(&observed)).blocked_by.unwrap().reason, "CrashLoopBackOff");
    observed.backoffs = refused(0, true);
    assert_eq!(written(decide(&observed)).blocked_by.unwrap().reason, "DeleteRefused");
}

#[test]
fn all_deletes_that_fail_stop_no_create() {
    let mut observed = observed(3, vec![pod(0, NEW, finished()), pod(1, NEW, PodState::Ready)]);
    Arc::make_mut(&mut observed.pods[0]).created = ago(20);
    observed.backoffs = without(Backoffs::default().and_step(step::DELETE, failure("ServerBusy")));
    assert_eq!(created(&decide(&observed)), [2, 3]);
}

#[test]
fn a_status_that_is_refused_is_not_written_again_and_stops_no_create() {
    let mut observed = observed(2, serving(0..2));
    observed.backoffs = without(Backoffs::default().and_step(step::STATUS, failure("Invalid")));
    assert_eq!(decide(&observed), Action::Settle);
    observed.pods.pop();
    assert_eq!(created(&decide(&observed)), [1]);
}

#[test]
fn an_old_pod_that_may_not_be_deleted_does_not_cost_one_that_starts_when_it_is_tried_again() {
    let new = pod(4, NEW, starting());
    let old = (0..4).map(|slot| pod(slot, OLD, PodState::Ready));
    let mut observed = observed(4, old.chain([new, pod(5, NEW, starting())]).collect());
    let set = Arc::make_mut(&mut observed.set);
    (set.spec.max_surge, set.spec.max_unavailable) = (IntOrString::Int(1), IntOrString::Int(0));
    observed.backoffs = refused(0, true);
    assert!(matches!(decide(&observed), Action::WriteStatus(_)), "{:?}", decide(&observed));
}

/// A cluster in which one pod cannot be deleted, and others become ready one after another.
fn play(mut observed: Observed, stays: &str) -> Observed {
    let budget = Budget::of(&observed.set.spec);
    let start = observed.pods.iter().filter(|pod| pod.is_ready()).count();
    for _ in 0..1_000 {
        match decide(&observed) {
            Action::Create { revision, slots } => {
                observed.pods.extend(slots.into_iter().map(|slot| pod(slot, &revision, starting())));
                let others = observed.pods.iter().filter(|pod| &*pod.uid != stays).count();
                assert!(others <= budget.wanted + budget.surge, "{others} pods beside it");
            }
            Action::Delete(pods) => {
                if pods.iter().any(|pod| &*pod.uid == stays) {
                    let held_up = Backoffs::default();
                    observed.backoffs =
                        without(held_up.and_item(step::DELETE, stays, failure("DeleteRefused")));
                }
                let goes = |pod: &PodRow| pods.iter().any(|gone| gone.uid == pod.uid) && &*pod.uid != stays;
                observed.pods.retain(|pod| !goes(pod));
                let ready = observed.pods.iter().filter(|pod| pod.is_ready()).count();
                assert!(ready >= budget.least().min(start), "{ready} pods serve");
            }
            Action::WriteStatus(status) => Arc::make_mut(&mut observed.set).status = Some(*status),
            Action::Settle | Action::Wait(_) => {
                let starts = observed.pods.iter().position(|pod| !pod.is_ready() && &*pod.revision == NEW);
                let Some(next) = starts else { return observed };
                Arc::make_mut(&mut observed.pods[next]).state = PodState::Ready;
            }
            action => panic!("{action:?}"),
        }
    }
    panic!("it never came to rest");
}

proptest! {
    /// For any old pod that cannot be deleted, serving or not, all others are replaced within the budget.
    #[test]
    fn a_pod_that_may_not_be_deleted_stops_no_replacement(
        replicas in 1..10u32,
        stays in any::<prop::sample::Index>(),
        serves in any::<bool>(),
        surge in 0..3i32,
        unavailable in 0..3i32,
    ) {
        let stays = u32::try_from(stays.index(usize::try_from(replicas).unwrap())).unwrap();
        let state = |slot| if slot == stays && !serves { stuck("CrashLoopBackOff") } else { PodState::Ready };
        let pods = (0..replicas).map(|slot| pod(slot, OLD, state(slot))).collect();
        let mut observed = observed(i32::try_from(replicas).unwrap(), pods);
        let set = Arc::make_mut(&mut observed.set);
        set.spec.max_surge = IntOrString::Int(surge);
        set.spec.max_unavailable = IntOrString::Int(unavailable);
        let end = play(observed, &format!("pod-{stays}"));
        let (new, old): (Vec<_>, Vec<_>) = end.pods.iter().partition(|pod| &*pod.revision == NEW);
        prop_assert_eq!(new.len(), usize::try_from(replicas).unwrap());
        prop_assert!(new.iter().all(|pod| pod.is_ready()));
        prop_assert_eq!(old.len(), 1);
    }
}
