//! Terminating pods whose end is awaited.

use catena_api::PodReplacementPolicy::{self, TerminationComplete, TerminationStarted};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use operator_kit::report::Conditions;

use super::*;

/// A set of one pod.
fn one(policy: PodReplacementPolicy, surge: i32, pods: Vec<Arc<PodRow>>) -> Observed {
    let mut observed = observed(1, pods);
    let spec = &mut Arc::make_mut(&mut observed.set).spec;
    (spec.pod_replacement_policy, spec.max_surge) = (policy, IntOrString::Int(surge));
    observed
}

#[test]
fn a_pod_is_created_in_place_of_one_that_terminates_at_once_or_when_that_is_gone() {
    for revision in [NEW, OLD] {
        let of = |policy, surge| one(policy, surge, vec![pod(0, revision, PodState::Terminating(now()))]);
        assert_eq!(created(&decide(&of(TerminationStarted, 0))), [1], "{revision}");
        assert_eq!(created(&decide(&of(TerminationComplete, 1))), [1], "it counts for the surge");
        let mut waits = of(TerminationComplete, 0);
        let status = written(decide(&waits));
        assert_eq!((status.terminating, status.replicas), (Some(1), 0), "{revision}");
        let ready = Conditions::find(&status.conditions, Conditions::READY).unwrap();
        let why = "; 1 terminate, and spec.podReplacementPolicy waits for their end";
        assert!(ready.message.ends_with(why), "{}", ready.message);
        waits.pods.clear();
        assert_eq!(created(&decide(&waits)), [0]);
    }
}

#[test]
fn a_pod_that_stays_beyond_its_time_is_named_if_its_end_is_awaited() {
    let blocker = |policy, late| {
        let observed = one(policy, 0, vec![pod(0, OLD, PodState::Terminating(ago(late)))]);
        (status(&observed).blocked_by, next_blocker(&observed))
    };
    let (early, wakes) = blocker(TerminationComplete, 29);
    assert_eq!((early, wakes), (None, Some(Duration::from_secs(1))), "each rollout would cost writes");
    assert_eq!(blocker(TerminationComplete, -600).1, Some(Duration::from_secs(630)), "a long grace period");
    let (late, wakes) = blocker(TerminationComplete, 30);
    let late = late.unwrap();
    assert_eq!((&*late.kind, &*late.name, &*late.reason, wakes), ("Pod", "web-0", "Terminating", None));
    assert_eq!(blocker(TerminationStarted, 60), (None, None));
}

#[test]
fn what_served_last_is_made_again_only_when_what_terminates_is_gone() {
    let bad = pod(1, NEW, stuck("ImagePullBackOff"));
    let mut observed = one(TerminationComplete, 0, vec![bad, pod(0, OLD, PodState::Terminating(now()))]);
    Arc::make_mut(&mut observed.set).spec.replicas = 2;
    observed.former = Some(OLD.into());
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
    observed.pods.pop();
    assert!(matches!(decide(&observed), Action::Recreate { revision, .. } if revision == OLD));
}

#[test]
fn complete_is_told_beside_a_terminating_pod_only_if_nobody_waits_for_its_end() {
    let pods = || vec![pod(0, OLD, PodState::Terminating(now())), pod(1, NEW, PodState::Ready)];
    let is_ready = |observed: &Observed| {
        let status = written(decide(observed));
        (Conditions::is_true(&status.conditions, Conditions::READY), status.terminating)
    };
    assert_eq!(is_ready(&one(TerminationStarted, 1, pods())), (true, None));
    let mut waits = one(TerminationComplete, 1, pods());
    assert_eq!(is_ready(&waits), (false, Some(1)));
    Arc::make_mut(&mut waits.set).status = Some(written(decide(&waits)));
    waits.status_age = StatusAge::Written(Duration::ZERO);
    waits.pods.remove(0);
    assert_eq!(is_ready(&waits), (true, Some(0)));
}

#[test]
fn the_end_of_pods_of_an_empty_set_is_told_at_once() {
    let mut observed = one(TerminationComplete, 0, vec![pod(0, NEW, PodState::Terminating(now()))]);
    Arc::make_mut(&mut observed.set).spec.replicas = 0;
    Arc::make_mut(&mut observed.set).status = Some(written(decide(&observed)));
    observed.status_age = StatusAge::Written(Duration::ZERO);
    observed.pods.clear();
    assert_eq!(written(decide(&observed)).terminating, Some(0));
}
