//! The content and pace of reports.

use catena_api::PodReplacementPolicy::TerminationComplete;
use operator_kit::report::Conditions;

use super::*;

#[test]
fn a_template_that_is_gone_is_told_while_its_pods_still_run() {
    let mut observed = observed(1, vec![pod(0, OLD, PodState::Ready)]);
    observed.revision = Err(TemplateError::unknown("x", ""));
    let status = written(decide(&observed));
    assert_eq!(status.active, 1);
    assert_eq!(Conditions::find(&status.conditions, Conditions::READY).unwrap().reason, "TemplateNotFound");
    assert!(Conditions::is_true(&status.conditions, Conditions::STALLED));
}

#[test]
fn backing_off_means_to_report_and_nothing_else() {
    let mut observed = observed(3, vec![pod(0, NEW, PodState::Ready)]);
    let failure = Failure::transient("QuotaExceeded", "no more pods");
    observed.backoffs = Backoffs::of_everything(failure);
    let status = written(decide(&observed));
    let blocker = status.blocked_by.unwrap();
    assert_eq!((blocker.kind.as_str(), blocker.reason.as_str()), ("BasicReplicaSet", "QuotaExceeded"));
    assert!(!Conditions::is_true(&status.conditions, Conditions::STALLED));
}

#[test]
fn while_pods_are_not_known_the_last_numbers_stay() {
    let mut observed = observed(1, vec![pod(0, NEW, PodState::Ready)]);
    let status = written(decide(&observed));
    assert_eq!(status.active, 1);
    Arc::make_mut(&mut observed.set).status = Some(status);
    observed.pods.clear();
    observed.is_blind = true;
    observed.backoffs = Backoffs::of_everything(Failure::transient("PodsNotObserved", ""));
    let blind = written(decide(&observed));
    assert!(!Conditions::is_true(&blind.conditions, Conditions::READY));
    assert_eq!((blind.active, blind.available, blind.replicas, blind.updated), (1, 1, 1, 1));
}

#[test]
fn what_waits_for_a_change_is_stalled() {
    let mut observed = observed(1, Vec::new());
    let failure = Failure::stalled("ParameterMissing", "image");
    observed.backoffs = Backoffs::of_everything(failure);
    let status = written(decide(&observed));
    assert!(Conditions::is_true(&status.conditions, Conditions::STALLED));
    assert!(!Conditions::is_true(&status.conditions, Conditions::RECONCILING));
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
fn a_pod_that_ended_and_is_gone_blocks_while_no_other_has_a_problem() {
    let blocker = |state| {
        let mut observed = observed(2, vec![pod(0, NEW, PodState::Ready), pod(1, NEW, state)]);
        observed.ended = Some(pod(1, NEW, finished()));
        Arc::make_mut(&mut observed.set).spec.pod_replacement_policy = TerminationComplete;
        status(&observed).blocked_by.map(|blocker| blocker.reason)
    };
    assert_eq!(blocker(starting()).as_deref(), Some("Evicted"));
    assert_eq!(blocker(stuck("ImagePullBackOff")).as_deref(), Some("ImagePullBackOff"));
    assert_eq!(blocker(PodState::Terminating(ago(30))).as_deref(), Some("Terminating"));
    assert_eq!(blocker(PodState::Ready), None);
}

#[test]
fn that_a_pod_ended_matters_until_its_successor_or_enough_others_serve_or_the_template_changes() {
    let is_over = |ended: &str, states: [PodState; 3], min_ready| {
        let pods = (0..).zip(states).map(|(slot, state)| pod(slot, NEW, state)).collect();
        let mut observed = observed(2, pods);
        Arc::make_mut(&mut observed.set).spec.min_ready_seconds = min_ready;
        observed.has_replaced(&pod(1, ended, finished()))
    };
    let ready = PodState::Ready;
    assert!(!is_over(NEW, [ready.clone(), starting(), starting()], 0));
    assert!(is_over(OLD, [ready.clone(), starting(), starting()], 0));
    assert!(is_over(NEW, [starting(), ready.clone(), starting()], 0));
    assert!(!is_over(NEW, [starting(), ready.clone(), starting()], 1));
    assert!(is_over(NEW, [ready.clone(), starting(), ready], 0), "the set has become smaller");
    let mut broken = observed(2, Vec::new());
    broken.revision = Err(TemplateError::unknown("x", ""));
    assert!(!broken.has_replaced(&pod(1, NEW, finished())));
}

#[test]
fn a_status_that_says_the_same_is_not_written_again() {
    let mut observed = observed(1, vec![pod(0, NEW, PodState::Ready)]);
    let status = written(decide(&observed));
    assert!(Conditions::is_true(&status.conditions, Conditions::READY));
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

/// The status that the definition gives to a set before its first report.
fn unreported() -> BasicReplicaSetStatus {
    let mut definitions = catena_api::crds().into_iter();
    let sets = definitions.find(|definition| definition.spec.names.kind == "BasicReplicaSet").unwrap();
    let schema = sets.spec.versions[0].schema.clone().unwrap().open_api_v3_schema.unwrap();
    let status = schema.properties.unwrap()["status"].default.clone().unwrap().0;
    serde_json::from_value(status).unwrap()
}

#[test]
fn a_first_status_waits_for_readiness_but_not_for_a_failure() {
    let mut observed = observed(1, vec![pod(0, NEW, starting())]);
    observed.status_age = StatusAge::Unwritten(Duration::ZERO);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(30)));
    Arc::make_mut(&mut observed.set).status = Some(unreported());
    assert_eq!(
        decide(&observed),
        Action::Wait(Duration::from_secs(30)),
        "what the definition says is no report"
    );
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
    observed.revision = Err(TemplateError::unknown("x", ""));
    Arc::make_mut(&mut observed.set).status = Some(written(decide(&observed)));
    Arc::make_mut(&mut observed.set).spec.replicas = 1;
    observed.pods.truncate(1);
    observed.status_age = StatusAge::Written(Duration::from_secs(1));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(4)));
}

#[test]
fn a_pod_that_becomes_available_by_time_alone_is_told_at_that_moment() {
    let mut pods: Vec<_> = (0..2).map(|slot| pod(slot, NEW, PodState::Ready)).collect();
    for (pod, since) in pods.iter_mut().zip([2, 4]) {
        Arc::make_mut(pod).ready_since = Some(ago(since));
    }
    let mut observed = observed(3, pods);
    observed.pods.push(pod(2, NEW, stuck("Unschedulable")));
    Arc::make_mut(&mut observed.set).spec.min_ready_seconds = 10;
    let status = written(decide(&observed));
    assert_eq!((status.active, status.available), (2, 0));
    Arc::make_mut(&mut observed.set).status = Some(status);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(6)));
    observed.now = now() + SignedDuration::from_secs(6);
    let status = written(decide(&observed));
    assert_eq!((status.active, status.available), (2, 1));
    Arc::make_mut(&mut observed.set).status = Some(status);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(2)));
}

#[test]
fn what_others_say_in_conditions_of_their_own_is_no_reason_to_write() {
    let mut observed = observed(1, vec![pod(0, NEW, PodState::Ready)]);
    let mut status = written(decide(&observed));
    let theirs = Conditions::new(1, now()).with("Theirs", false, "Seen", "").with_transition_times(&[]);
    status.conditions.splice(0..0, theirs);
    Arc::make_mut(&mut observed.set).status = Some(status.clone());
    assert_eq!(decide(&observed), Action::Settle);
    // A condition of its own types exists only while it is reported.
    status.conditions[0].type_ = Conditions::STALLED.into();
    Arc::make_mut(&mut observed.set).status = Some(status);
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn a_parameter_that_the_template_does_not_read_is_told_and_harms_nothing() {
    let mut observed = observed(1, vec![pod(0, NEW, PodState::Ready)]);
    observed.unread = vec!["spec.parameters.prot (did you mean port?)".into()];
    let status = written(decide(&observed));
    let told = Conditions::find(&status.conditions, "UnreadParameters").unwrap();
    assert!(told.message.contains("spec.parameters.prot (did you mean port?)"), "{}", told.message);
    assert!(Conditions::is_true(&status.conditions, Conditions::READY));
    observed.unread.clear();
    let status = written(decide(&observed));
    assert!(Conditions::find(&status.conditions, "UnreadParameters").is_none());
}
