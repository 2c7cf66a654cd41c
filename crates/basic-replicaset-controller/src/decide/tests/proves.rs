//! A revision replaces another one only when it has proven itself; until then, lost pods are made from the one that served.

use catena_api::LastServed;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use operator_kit::report::Conditions;
use proptest::{prelude::*, sample::Index};

use super::{
    proof::{former, newly_proven},
    *,
};

/// A rollout from [`OLD`], which is on record, to [`NEW`].
fn rollout(replicas: i32, pods: Vec<Arc<PodRow>>) -> Observed {
    Observed { former: Some(OLD.into()), ..observed(replicas, pods) }
}

fn old(slot: u32) -> Arc<PodRow> {
    pod(slot, OLD, PodState::Ready)
}

fn bad(slot: u32) -> Arc<PodRow> {
    pod(slot, NEW, stuck("ImagePullBackOff"))
}

fn create(revision: &str, slots: &[u32]) -> Action {
    let (revision, slots) = (revision.to_owned(), slots.to_vec());
    if revision == OLD { Action::Recreate { revision, slots } } else { Action::Create { revision, slots } }
}

/// Pods of [`OLD`] are refused, for example by a policy that is newer than they are.
fn refused() -> Backoffs {
    Backoffs::default().and_step(step::RECREATE, Failure::stalled("Forbidden", "why"))
}

#[test]
fn what_a_stuck_rollout_loses_is_made_again_from_the_revision_that_served() {
    assert_eq!(decide(&rollout(3, vec![bad(0)])), create(OLD, &[1, 2, 3]), "all were lost at once");
    let mut pods: Vec<_> = [bad(0)].into_iter().chain((1..4).map(old)).collect();
    assert_eq!(decide(&rollout(6, pods.clone())), create(OLD, &[4, 5]), "five of six have to serve");
    pods.extend((4..6).map(old));
    assert_eq!(decide(&rollout(6, pods)), create(NEW, &[6, 7]), "the rest is the new revision's");
}

#[test]
fn while_the_revision_that_served_is_refused_the_present_one_replaces_it_as_if_it_were_there() {
    let one = |pods| Observed { backoffs: refused(), ..rollout(1, pods) };
    assert_eq!(decide(&one(Vec::new())), create(NEW, &[0]));
    assert!(
        !matches!(decide(&one(vec![bad(0)])), Action::Create { .. }),
        "not a second one that does not serve"
    );
    // Four desired: one in addition, and one missing. Three have to serve.
    let mut four = Observed { backoffs: refused(), ..rollout(4, Vec::new()) };
    assert_eq!(decide(&four), create(NEW, &[0, 1]), "the rest is the room of those that are missing");
    let served = LastServed { revision: OLD.into(), pod: "{}".into(), ..LastServed::default() };
    Arc::make_mut(&mut four.set).status =
        Some(BasicReplicaSetStatus { last_served: Some(served), ..BasicReplicaSetStatus::default() });
    let seen = Observed { pods: vec![bad(0), bad(1)], ..four.clone() };
    let told = status(&seen);
    let ready = Conditions::find(&told.conditions, Conditions::READY).unwrap();
    assert_eq!(ready.reason, "Forbidden");
    assert!(ready.message.contains("are not made again: why"), "{}", ready.message);
    assert!(Conditions::find(&told.conditions, Conditions::STALLED).is_none(), "it goes on");
    let untold = status(&Observed { backoffs: Backoffs::default(), ..seen.clone() });
    assert_eq!(minimum_age(&untold, &told, &seen), StatusAge::NOW, "it is told at once");
    four.backoffs = Backoffs::default();
    assert_eq!(decide(&four), create(OLD, &[0, 1, 2]), "it is tried again");
    let broken = Observed { revision: Err(TemplateError::unknown("x", "")), ..one(Vec::new()) };
    let told = written(decide(&broken));
    assert!(Conditions::is_true(&told.conditions, Conditions::STALLED), "nothing else can be made");
}

#[test]
fn a_revision_has_proven_itself_when_as_many_pods_as_one_step_replaces_serve_at_once() {
    // Four desired: one in addition, and one missing.
    let new = |slot, state| pod(slot, NEW, state);
    let mut one = rollout(4, vec![new(0, PodState::Ready), new(1, starting())]);
    assert_eq!((newly_proven(&one), former(&one)), (None, Some(OLD)));
    assert_eq!(decide(&one), create(OLD, &[2, 3]));
    Arc::make_mut(&mut one.pods[1]).state = PodState::Ready;
    assert_eq!((newly_proven(&one), former(&one)), (Some(NEW), None));
    assert_eq!(decide(&one), create(NEW, &[2, 3]));
    Arc::make_mut(&mut one.set).spec.min_ready_seconds = 10;
    assert_eq!(newly_proven(&one), None, "not for long enough");
    assert_eq!(newly_proven(&observed(0, Vec::new())), None, "no pods prove nothing");
}

#[test]
fn a_proof_is_recorded_with_the_status_and_kept_until_the_next_one_or_until_nothing_is_desired() {
    let mut observed = observed(1, vec![pod(0, NEW, PodState::Ready)]);
    let status = written(decide(&observed));
    assert!(Conditions::is_true(&status.conditions, Conditions::READY), "in one write");
    assert_eq!(status.last_served.as_ref().map(|served| &*served.revision), Some(NEW));
    let set = Arc::make_mut(&mut observed.set);
    set.status = Some(status.clone());
    assert_eq!(newly_proven(&observed), None, "it is on record");
    observed.revision = Ok("next".into());
    assert_eq!(crate::status::status(&observed).last_served, status.last_served);
    Arc::make_mut(&mut observed.set).spec.replicas = 0;
    assert_eq!(crate::status::status(&observed).last_served, None);
}

#[test]
fn pods_that_are_not_made_again_because_their_revision_is_not_recorded_are_told_with_the_reason() {
    let told = |pod: &str, former: Option<&str>, pods: Vec<Arc<PodRow>>| {
        let mut observed = Observed { former: former.map(str::to_owned), ..observed(2, pods) };
        let served = LastServed { revision: OLD.into(), pod: pod.into(), ..LastServed::default() };
        Arc::make_mut(&mut observed.set).status =
            Some(BasicReplicaSetStatus { last_served: Some(served), ..BasicReplicaSetStatus::default() });
        let status = status(&observed);
        let ready = Conditions::find(&status.conditions, Conditions::READY).unwrap();
        (ready.reason.clone(), ready.message.clone())
    };
    let one_lost = || vec![old(0), bad(1)];
    for (pod, pods, why) in [
        ("", one_lost(), "more than 256 KiB is not recorded"),
        ("{}", one_lost(), "status.lastServed.pod is not what it rendered"),
        ("{}", vec![bad(0), bad(1)], "status.lastServed.pod is not what it rendered"),
    ] {
        let (reason, message) = told(pod, None, pods);
        assert_eq!(reason, "LastServedUnusable", "{message}");
        assert!(message.contains(why), "{message}");
    }
    for (pod, former, pods) in [("{}", Some(OLD), one_lost()), ("", None, vec![old(0), old(1), bad(2)])] {
        let (reason, message) = told(pod, former, pods);
        assert_eq!(reason, "Replacing", "{message}");
        assert!(!message.contains("not made again"), "{message}");
    }
}

#[test]
fn a_broken_template_costs_no_pod_that_is_lost() {
    let mut observed = rollout(3, vec![old(0)]);
    observed.revision = Err(TemplateError::unknown("x", ""));
    assert_eq!(decide(&observed), create(OLD, &[1, 2]));
}

#[test]
fn pods_that_are_about_to_serve_again_are_not_deleted_in_place_of_useless_ones() {
    let starts = |slot| pod(slot, OLD, starting());
    let older = pod(2, "older", stuck("CrashLoopBackOff"));
    let observed = rollout(3, vec![starts(0), starts(1), older, bad(3)]);
    assert_eq!(deleted(&decide(&observed)), ["web-2"], "there is room for a third one then");
}

#[test]
fn a_pod_that_has_just_become_ready_replaces_nobody_before_it_has_served_for_long_enough() {
    let ready = |slot, revision, since| {
        let mut pod = pod(slot, revision, PodState::Ready);
        Arc::make_mut(&mut pod).ready_since = Some(ago(since));
        pod
    };
    let mut observed = observed(1, vec![ready(0, OLD, 3600), ready(1, NEW, 2)]);
    Arc::make_mut(&mut observed.set).spec.min_ready_seconds = 10;
    let status = written(decide(&observed));
    let said = Conditions::find(&status.conditions, Conditions::READY).unwrap();
    assert_eq!((said.status.as_str(), status.active, status.available), ("False", 2, 1));
    assert!(said.message.contains("1 are ready for less than spec.minReadySeconds"), "{}", said.message);
    Arc::make_mut(&mut observed.set).status = Some(status);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(8)));
    observed.now = now() + SignedDuration::from_secs(8);
    assert_eq!(deleted(&decide(&observed)), ["web-0"]);
}

/// A cluster in which no pod of the new revision ever serves, and others are lost one after another.
fn play(mut observed: Observed, lost: &[Index]) -> Observed {
    let budget = Budget::of(&observed.set.spec);
    let mut lost = lost.iter();
    for _ in 0..1_000 {
        match decide(&observed) {
            Action::Create { revision, slots } | Action::Recreate { revision, slots } => {
                observed.pods.extend(slots.into_iter().map(|slot| pod(slot, &revision, starting())));
                assert!(observed.pods.len() <= budget.wanted + budget.surge, "{} pods", observed.pods.len());
            }
            Action::Delete(pods) => {
                observed.pods.retain(|pod| !pods.iter().any(|gone| gone.uid == pod.uid));
            }
            Action::WriteStatus(status) => Arc::make_mut(&mut observed.set).status = Some(*status),
            Action::Settle | Action::Wait(_) => {
                let starts = |pod: &Arc<PodRow>| !pod.is_ready() && &*pod.revision == OLD;
                if let Some(next) = observed.pods.iter().position(starts) {
                    Arc::make_mut(&mut observed.pods[next]).state = PodState::Ready;
                } else if let Some(place) = lost.next() {
                    observed.pods.remove(place.index(observed.pods.len()));
                } else {
                    return observed;
                }
            }
            action => panic!("{action:?}"),
        }
    }
    panic!("it never came to rest");
}

proptest! {
    #[test]
    fn a_revision_that_never_serves_costs_no_service_whatever_is_lost(
        replicas in 1..8u32,
        surge in 0..3i32,
        unavailable in 0..3i32,
        lost in proptest::collection::vec(any::<Index>(), 0..12),
    ) {
        let mut observed = rollout(i32::try_from(replicas).unwrap(), (0..replicas).map(old).collect());
        let set = Arc::make_mut(&mut observed.set);
        set.spec.max_surge = IntOrString::Int(surge);
        set.spec.max_unavailable = IntOrString::Int(unavailable);
        let least = Budget::of(&observed.set.spec).least();
        let end = play(observed, &lost);
        let serving = end.pods.iter().filter(|pod| pod.is_ready()).count();
        prop_assert!(serving >= least, "{serving} of {least}");
    }
}
