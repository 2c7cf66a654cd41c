//! Missing pods are created, or adopted.

use catena_api::deletion::TERMINATING;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_kit::report::Conditions;

use super::*;
use crate::observed::succession_ends_in;

#[test]
fn missing_pods_are_created_in_the_free_places() {
    let observed = observed(4, vec![pod(1, NEW, PodState::Ready), pod(3, NEW, PodState::Terminating(now()))]);
    assert_eq!(created(&decide(&observed)), [0, 2, 4]);
}

#[test]
fn orphans_of_the_very_same_are_taken_back_before_others_are_made() {
    let mut observed = observed(2, vec![pod(0, NEW, PodState::Ready)]);
    observed.orphans = vec![pod(7, NEW, PodState::Ready), pod(8, NEW, PodState::Ready)];
    let Action::Adopt(adopted) = decide(&observed) else { panic!() };
    assert_eq!(adopted.len(), 1, "no more than are wanted");
}

#[test]
fn pods_of_a_former_set_of_the_name_are_waited_for_but_not_for_ever() {
    let mut observed = observed(2, Vec::new());
    Arc::make_mut(&mut observed.set).metadata.creation_timestamp = Some(Time(ago(4)));
    observed.succession = succession_ends_in(&observed.set, now());
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(6)));

    let orphan = pod(0, NEW, PodState::Ready);
    let taken_back = Observed { orphans: vec![orphan], ..observed.clone() };
    assert!(matches!(decide(&taken_back), Action::Adopt(_)));
    let gone = Observed { succession: None, ..observed.clone() };
    assert_eq!(created(&decide(&gone)), [0, 1]);
    Arc::make_mut(&mut observed.set).metadata.creation_timestamp = Some(Time(ago(10)));
    assert_eq!(succession_ends_in(&observed.set, now()), None);
}

#[test]
fn a_set_that_is_being_deleted_is_left_alone() {
    let mut observed = observed(3, Vec::new());
    Arc::make_mut(&mut observed.set).metadata.deletion_timestamp = Some(Time(now()));
    assert!(matches!(decide(&observed), Action::Wait(_)), "it may be gone in a moment");
}

#[test]
fn a_deletion_that_is_held_up_is_reported_once_with_what_holds_it() {
    let pods = (0..2).map(|slot| pod(slot, NEW, PodState::Ready)).collect();
    let mut observed = observed(2, pods);
    let mut status = written(decide(&observed));
    assert!(Conditions::is_true(&status.conditions, Conditions::READY));
    let metadata = &mut Arc::make_mut(&mut observed.set).metadata;
    metadata.deletion_timestamp = Some(Time(ago(5)));
    for (finalizers, blocker) in [
        (vec!["example.com/hold"], ("BasicReplicaSet", "web")),
        (vec!["foregroundDeletion", "example.com/hold"], ("Pod", "web-0")),
    ] {
        let set = Arc::make_mut(&mut observed.set);
        set.metadata.finalizers = Some(finalizers.into_iter().map(str::to_owned).collect());
        set.status = Some(status);
        status = written(decide(&observed));
        let ready = Conditions::find(&status.conditions, Conditions::READY).unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", TERMINATING));
        let by = status.blocked_by.as_ref().unwrap();
        assert_eq!((by.kind.as_str(), by.name.as_str()), blocker);
        // A dependent is not said to have the finalizer of its owner.
        assert_eq!(by.message.contains("example.com/hold"), by.kind == "BasicReplicaSet", "{by:?}");
        assert_eq!(status.active, 2, "the pods still serve");
        let mut told = observed.clone();
        Arc::make_mut(&mut told.set).status = Some(status.clone());
        assert_eq!(decide(&told), Action::Settle);
    }
}

#[test]
fn a_pod_that_ended_keeps_its_place_for_a_while_and_is_then_replaced() {
    let mut pods = vec![pod(0, NEW, finished())];
    Arc::make_mut(&mut pods[0]).created = ago(2);
    let mut observed = observed(1, pods.clone());
    Arc::make_mut(&mut observed.set).status = Some(written(decide(&observed)));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(8)));
    // Nor does it wait longer for a change of the status that is not urgent, or that is refused.
    Arc::make_mut(&mut observed.set).status.as_mut().unwrap().updated = 7;
    observed.status_age = StatusAge::Written(Duration::ZERO);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(8)));
    observed.backoffs = Backoffs::default().and_step(step::STATUS, failure("Invalid"));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(8)));
    observed.backoffs = Backoffs::default();
    Arc::make_mut(&mut pods[0]).created = ago(20);
    observed.pods = pods;
    assert_eq!(deleted(&decide(&observed)), ["web-0"]);
}

#[test]
fn a_pod_that_lived_long_enough_is_replaced_although_the_clock_of_this_process_is_behind() {
    for (lived, expected) in [(20, true), (2, false)] {
        let mut pods = vec![pod(0, NEW, finished())];
        let ended = Arc::make_mut(&mut pods[0]);
        ended.created = ago(-3600);
        let PodState::Finished(problem) = &mut ended.state else { panic!("it has ended") };
        problem.since = ended.created + SignedDuration::from_secs(lived);
        let observed = observed(1, pods);
        assert_eq!(observed.is_over(&observed.pods[0]), expected, "{lived} s");
    }
}
