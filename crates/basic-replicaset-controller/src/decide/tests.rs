use std::collections::BTreeMap;

use catena_api::{BasicReplicaSet, BasicReplicaSetSpec};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::{
    apis::meta::v1::{ObjectMeta, Time},
    util::intstr::IntOrString,
};
use operator_kit::{Category, Failure, StatusAge, conditions};
use proptest::prelude::*;

use super::*;
use crate::pod::{Owner, Trouble};

const NEW: &str = "new";
const OLD: &str = "old";

fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

fn pod(slot: u32, revision: &str, state: PodState) -> Arc<PodRow> {
    Arc::new(PodRow {
        namespace: "shop".into(),
        name: format!("web-{slot}").into(),
        uid: format!("pod-{slot}").into(),
        owner: Some(Owner { uid: "set".into(), name: "web".into() }),
        revision: revision.into(),
        slot: Some(slot),
        created: ago(60),
        deletion_cost: 0,
        state,
    })
}

fn starting() -> PodState {
    PodState::NotReady(Trouble {
        reason: "NotReady".into(),
        message: "".into(),
        since: now(),
        is_known: false,
    })
}

fn stuck(reason: &str) -> PodState {
    PodState::NotReady(Trouble {
        reason: reason.into(),
        message: "why".into(),
        since: ago(5),
        is_known: true,
    })
}

fn finished() -> PodState {
    PodState::Finished(Trouble {
        reason: "Evicted".into(),
        message: "".into(),
        since: ago(5),
        is_known: true,
    })
}

fn observed(replicas: i32, pods: Vec<Arc<PodRow>>) -> Observed {
    let metadata = ObjectMeta {
        name: Some("web".into()),
        namespace: Some("shop".into()),
        uid: Some("set".into()),
        generation: Some(1),
        ..ObjectMeta::default()
    };
    let set = BasicReplicaSet {
        metadata,
        spec: BasicReplicaSetSpec { replicas, ..Default::default() },
        status: None,
    };
    Observed {
        set: Arc::new(set),
        attempt: Attempt::Allowed,
        is_blind: false,
        now: now(),
        revision: Ok(NEW.into()),
        pods,
        orphans: Vec::new(),
        former: Vec::new(),
        status_age: StatusAge::Written(Duration::from_secs(60)),
    }
}

fn created(action: &Action) -> Vec<u32> {
    match action {
        Action::Create { slots, .. } => slots.clone(),
        action => panic!("{action:?}"),
    }
}

fn deleted(action: &Action) -> Vec<String> {
    match action {
        Action::Delete(pods) => pods.iter().map(|pod| pod.name.to_string()).collect(),
        action => panic!("{action:?}"),
    }
}

fn written(action: Action) -> BasicReplicaSetStatus {
    match action {
        Action::WriteStatus(status) => *status,
        action => panic!("{action:?}"),
    }
}

#[test]
fn missing_pods_are_created_in_the_free_places() {
    let observed = observed(4, vec![pod(1, NEW, PodState::Ready), pod(3, NEW, PodState::Terminating)]);
    assert_eq!(created(&decide(&observed)), [0, 2, 4]);
}

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
    // 4 wanted: one on top, one missing.
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
    observed.revision = Err(TemplateError::Unknown { template: "x".into(), known: String::new() });
    assert_eq!(deleted(&decide(&observed)).len(), 1);
    observed.pods.truncate(0);
    assert!(matches!(decide(&observed), Action::Refuse(_)));
}

#[test]
fn a_template_that_is_gone_is_told_while_its_pods_still_run() {
    let mut observed = observed(1, vec![pod(0, OLD, PodState::Ready)]);
    observed.revision = Err(TemplateError::Unknown { template: "x".into(), known: String::new() });
    let status = written(decide(&observed));
    assert_eq!(status.active, 1);
    assert_eq!(conditions::find(&status.conditions, conditions::READY).unwrap().reason, "TemplateNotFound");
    assert!(conditions::is_true(&status.conditions, conditions::STALLED));
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
    let mut former = pod(0, NEW, PodState::Ready);
    Arc::make_mut(&mut former).owner = Some(Owner { uid: "former".into(), name: "web".into() });
    observed.former = vec![former];
    Arc::make_mut(&mut observed.set).metadata.creation_timestamp = Some(Time(ago(4)));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(6)));

    let orphan = pod(0, NEW, PodState::Ready);
    let taken_back = Observed { orphans: vec![orphan], ..observed.clone() };
    assert!(matches!(decide(&taken_back), Action::Adopt(_)));
    let gone = Observed { former: Vec::new(), ..observed.clone() };
    assert_eq!(created(&decide(&gone)), [0, 1]);
    Arc::make_mut(&mut observed.set).metadata.creation_timestamp = Some(Time(ago(10)));
    assert_eq!(created(&decide(&observed)), [0, 1]);
}

#[test]
fn a_set_that_is_being_deleted_is_left_alone() {
    let mut observed = observed(3, Vec::new());
    Arc::make_mut(&mut observed.set).metadata.deletion_timestamp = Some(Time(now()));
    assert_eq!(decide(&observed), Action::Settle);
}

#[test]
fn a_pod_that_ended_keeps_its_place_for_a_while_and_is_then_replaced() {
    let mut pods = vec![pod(0, NEW, finished())];
    Arc::make_mut(&mut pods[0]).created = ago(2);
    let mut observed = observed(1, pods.clone());
    Arc::make_mut(&mut observed.set).status = Some(written(decide(&observed)));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(8)));
    Arc::make_mut(&mut pods[0]).created = ago(20);
    observed.pods = pods;
    assert_eq!(deleted(&decide(&observed)), ["web-0"]);
}

#[test]
fn backing_off_means_to_report_and_nothing_else() {
    let mut observed = observed(3, vec![pod(0, NEW, PodState::Ready)]);
    let failure = Failure {
        category: Category::Transient,
        reason: "QuotaExceeded",
        message: "no more pods".into(),
        is_expected: false,
    };
    observed.attempt = Attempt::Deferred(failure);
    let status = written(decide(&observed));
    let blocker = status.blocked_by.unwrap();
    assert_eq!((blocker.kind.as_str(), blocker.reason.as_str()), ("BasicReplicaSet", "QuotaExceeded"));
    assert!(!conditions::is_true(&status.conditions, conditions::STALLED));
}

#[test]
fn while_pods_are_not_known_the_last_numbers_stay() {
    let mut observed = observed(1, vec![pod(0, NEW, PodState::Ready)]);
    let status = written(decide(&observed));
    assert_eq!(status.active, 1);
    Arc::make_mut(&mut observed.set).status = Some(status);
    observed.pods.clear();
    observed.is_blind = true;
    observed.attempt = Attempt::Deferred(Failure {
        category: Category::Transient,
        reason: "PodsNotObserved",
        message: String::new(),
        is_expected: false,
    });
    let blind = written(decide(&observed));
    assert!(!conditions::is_true(&blind.conditions, conditions::READY));
    assert_eq!((blind.active, blind.replicas, blind.updated), (1, 1, 1));
}

#[test]
fn what_waits_for_a_change_is_stalled() {
    let mut observed = observed(1, Vec::new());
    let failure = Failure {
        category: Category::WaitsForChange,
        reason: "ParameterMissing",
        message: "image".into(),
        is_expected: false,
    };
    observed.attempt = Attempt::Deferred(failure);
    let status = written(decide(&observed));
    assert!(conditions::is_true(&status.conditions, conditions::STALLED));
    assert!(!conditions::is_true(&status.conditions, conditions::RECONCILING));
}

#[test]
fn the_first_pod_with_a_known_trouble_blocks() {
    let pods = vec![
        pod(0, NEW, PodState::Ready),
        pod(1, NEW, starting()),
        pod(2, NEW, stuck("ImagePullBackOff")),
        pod(3, NEW, stuck("Unschedulable")),
    ];
    let blocker = written(decide(&observed(4, pods))).blocked_by.unwrap();
    assert_eq!((blocker.name.as_str(), blocker.reason.as_str()), ("web-2", "ImagePullBackOff"));
}

#[test]
fn a_status_that_says_the_same_is_not_written_again() {
    let mut observed = observed(1, vec![pod(0, NEW, PodState::Ready)]);
    let status = written(decide(&observed));
    assert!(conditions::is_true(&status.conditions, conditions::READY));
    Arc::make_mut(&mut observed.set).status = Some(status);
    observed.now = now() + SignedDuration::from_secs(600);
    assert_eq!(decide(&observed), Action::Settle);
}

#[test]
fn another_pod_that_blocks_for_the_same_reason_is_no_news() {
    let mut observed = observed(4, (0..4).map(|slot| pod(slot, NEW, stuck("Unschedulable"))).collect());
    Arc::make_mut(&mut observed.set).status = Some(written(decide(&observed)));
    observed.status_age = StatusAge::Written(Duration::from_secs(1));
    observed.pods[0] = pod(0, NEW, PodState::Ready);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(4)));
    observed.pods[1] = pod(1, NEW, stuck("ImagePullBackOff"));
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn a_first_status_waits_for_readiness_but_not_for_a_failure() {
    let mut observed = observed(1, vec![pod(0, NEW, starting())]);
    observed.status_age = StatusAge::Unwritten(Duration::ZERO);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(10)));
    observed.pods = vec![pod(0, NEW, stuck("ImagePullBackOff"))];
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
    observed.pods = vec![pod(0, NEW, PodState::Ready)];
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn mere_numbers_are_gathered() {
    let mut observed = observed(4, (0..4).map(|slot| pod(slot, NEW, starting())).collect());
    Arc::make_mut(&mut observed.set).status = Some(written(decide(&observed)));
    observed.pods[0] = pod(0, NEW, PodState::Ready);
    observed.status_age = StatusAge::Written(Duration::from_secs(1));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(19)));
    observed.pods = (0..4).map(|slot| pod(slot, NEW, PodState::Ready)).collect();
    assert!(matches!(decide(&observed), Action::WriteStatus(_)), "that it is complete is told at once");
}

#[test]
fn numbers_that_came_to_rest_are_told_soon_also_where_the_set_is_not_ready() {
    let mut observed = observed(2, (0..2).map(|slot| pod(slot, OLD, PodState::Ready)).collect());
    observed.revision = Err(TemplateError::Unknown { template: "x".into(), known: String::new() });
    Arc::make_mut(&mut observed.set).status = Some(written(decide(&observed)));
    Arc::make_mut(&mut observed.set).spec.replicas = 1;
    observed.pods.truncate(1);
    observed.status_age = StatusAge::Written(Duration::from_secs(1));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(4)));
}

#[test]
fn what_others_say_in_conditions_of_their_own_is_no_reason_to_write() {
    let mut observed = observed(1, vec![pod(0, NEW, PodState::Ready)]);
    let mut status = written(decide(&observed));
    let theirs = conditions::Conditions::new(1, now()).with("Theirs", false, "Seen", "").since(&[]);
    status.conditions.splice(0..0, theirs);
    Arc::make_mut(&mut observed.set).status = Some(status.clone());
    assert_eq!(decide(&observed), Action::Settle);
    // Of its own types there is one only while it is said.
    status.conditions[0].type_ = conditions::STALLED.into();
    Arc::make_mut(&mut observed.set).status = Some(status);
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

/// A cluster that does what it is told, and in which pods become ready one after the other.
fn play(mut observed: Observed, disturb: &[u8]) -> (Observed, usize) {
    let budget = Budget::of(&observed.set.spec);
    let start = observed.pods.iter().filter(|pod| pod.is_ready()).count();
    for step in 0..2_000 {
        match decide(&observed) {
            Action::Create { revision, slots } => {
                let total = observed.pods.iter().filter(|pod| pod.counts()).count() + slots.len();
                assert!(total <= budget.wanted + budget.surge, "{total} pods");
                observed.pods.extend(slots.into_iter().map(|slot| pod(slot, &revision, starting())));
            }
            Action::Delete(pods) => {
                observed.pods.retain(|pod| !pods.iter().any(|gone| gone.uid == pod.uid));
                let ready = observed.pods.iter().filter(|pod| pod.is_ready()).count();
                assert!(ready >= budget.least().min(start), "{ready} pods serve");
            }
            Action::WriteStatus(status) => {
                Arc::make_mut(&mut observed.set).status = Some(*status);
            }
            Action::Settle | Action::Wait(_) => {
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
            action @ (Action::Adopt(_) | Action::Refuse(_)) => panic!("{action:?}"),
        }
    }
    panic!("it never came to rest");
}

proptest! {
    /// Whatever there is at first, and in whatever order pods become ready, it ends with the wanted pods of the
    /// new template, and on the way there are never too many nor too few.
    #[test]
    fn every_replacement_ends_and_keeps_to_its_budget(
        replicas in 0..12i32,
        old in proptest::collection::vec(any::<bool>(), 0..12),
        surge in 0..4i32,
        unavailable in 0..4i32,
        disturb in proptest::collection::vec(any::<u8>(), 1..8),
    ) {
        let old: Vec<_> = old.into_iter().take(usize::try_from(replicas).unwrap()).collect();
        let pods = old.iter().zip(0..).map(|(ready, slot)| pod(slot, OLD, if *ready { PodState::Ready } else { stuck("CrashLoopBackOff") }));
        let mut observed = observed(replicas, pods.collect());
        let set = Arc::make_mut(&mut observed.set);
        set.spec.max_surge = IntOrString::Int(surge);
        set.spec.max_unavailable = IntOrString::Int(unavailable);
        set.spec.parameters = BTreeMap::new();
        let (end, _) = play(observed, &disturb);
        prop_assert_eq!(end.pods.len(), usize::try_from(replicas).unwrap());
        prop_assert!(end.pods.iter().all(|pod| pod.is_ready() && &*pod.revision == NEW));
        prop_assert!(conditions::is_true(&end.set.status.clone().unwrap().conditions, conditions::READY));
    }
}
