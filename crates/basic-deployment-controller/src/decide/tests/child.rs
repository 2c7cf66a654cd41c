//! Keeps the child in its desired state.

use catena_api::deletion::TERMINATING;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_kit::{run::Backoffs, write::Ownership};

use super::*;

#[test]
fn a_missing_child_is_created() {
    assert_eq!(decide(&observed(Found::Nothing)), create(desired()));
}

#[test]
fn a_child_that_is_as_wanted_is_not_written() {
    let status = written(decide(&ours(json!({}))));
    assert_eq!(ready(&status), (true, "Complete".into()));
    assert_eq!((status.progress.as_str(), status.selector.as_deref()), ("3/3", Some("a=b")));
    let mut observed = ours(json!({}));
    Arc::make_mut(&mut observed.deployment).status = Some(status);
    assert_eq!(decide(&observed), Action::Settle);
}

#[test]
fn scaling_sets_the_replicas_and_nothing_else() {
    assert!(matches!(
        decide(&ours(json!({"spec": {"replicas": 5}}))),
        Action::Scale { is_former: false, .. }
    ));
}

#[test]
fn another_rendering_is_applied_and_a_change_by_hand_undone() {
    let outdated = ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}}));
    assert!(matches!(decide(&outdated), Action::Apply { heals: false, .. }));
    for change in [
        json!({"metadata": {"annotations": {keys::HASH: ""}}}),
        json!({"spec": {"parameters": {"image": "evil"}}}),
        json!({"metadata": {"labels": {keys::DEPLOYMENT_UID: "other"}}}),
    ] {
        assert!(matches!(decide(&ours(change)), Action::Apply { heals: true, .. }));
    }
}

#[test]
fn what_the_server_itself_made_of_a_child_is_left() {
    let mut observed = ours(json!({"spec": {"parameters": {"image": "normalised"}}}));
    observed.settled_as =
        Some(desired().seen_in(&child(json!({"spec": {"parameters": {"image": "normalised"}}})).object));
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn paused_means_to_scale_and_nothing_else() {
    let mut observed = ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}}));
    spec(&mut observed).paused = true;
    assert_eq!(ready(&written(decide(&observed))), (false, "Paused".into()));
    spec(&mut observed).replicas = 4;
    assert!(matches!(decide(&observed), Action::Scale { is_former: false, .. }));
    observed.child = Found::Nothing;
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn a_child_of_somebody_else_is_not_taken() {
    let owner =
        json!([{"apiVersion": "v1", "kind": "Other", "name": "theirs", "uid": "x", "controller": true}]);
    let foreign = observed(Found::Foreign(child(json!({"metadata": {"ownerReferences": owner}}))));
    let Action::Refuse(refusal) = decide(&foreign) else { panic!() };
    let told = refusal.to_string();
    assert!(told.contains("Other \"theirs\"") && told.contains("another name"), "{told}");
    assert!(!told.contains("delete"), "its owner would lose it: {told}");
    let unknown =
        observed(Found::Orphan(child(json!({"metadata": {"annotations": null, "ownerReferences": null}}))));
    let Action::Refuse(refusal) = decide(&unknown) else { panic!() };
    assert_eq!(refusal.reason, "ChildNotOwned");
}

#[test]
fn nothing_is_written_to_a_child_that_breaks_the_contract() {
    let broken = json!({"spec": {"replicas": 1}, "status": {"active": "3"}});
    let mut observed = ours(broken.clone());
    let Action::Refuse(refusal) = decide(&observed) else { panic!() };
    let text = refusal.to_string();
    assert!(text.contains("\"web\" breaks the replica contract: contract.active: status.active"), "{text}");
    assert!(!observed.is_ready());
    let mut repaired = broken;
    repaired["status"]["active"] = 3.into();
    observed.child = Found::Ours(child(repaired));
    assert!(matches!(decide(&observed), Action::Scale { is_former: false, .. }));
}

#[test]
fn a_child_that_was_left_with_another_content_is_told_how_it_comes_back() {
    let left = child(json!({"metadata": {"annotations": {keys::HASH: "other"}, "ownerReferences": null}}));
    let Action::Refuse(refusal) = decide(&observed(Found::Orphan(left))) else { panic!() };
    assert!(refusal.to_string().contains("adopted without downtime"), "{refusal}");
}

#[test]
fn an_orphan_that_is_being_deleted_is_not_called_somebody_elses() {
    let deleted = json!({"ownerReferences": null, "deletionTimestamp": "1970-01-01T00:00:10Z"});
    let Action::Refuse(refusal) = decide(&observed(Found::Orphan(child(json!({"metadata": deleted})))))
    else {
        panic!()
    };
    let told = refusal.to_string();
    assert!(told.contains("is being deleted") && !told.contains("unknown owner"), "{told}");
}

#[test]
fn what_a_former_one_left_is_waited_for() {
    let owner = json!([{"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "former", "controller": true}]);
    let left = child(json!({"metadata": {"ownerReferences": owner}}));
    assert!(Ownership::is_former(left.owner.as_ref().unwrap(), &deployment()));
    assert!(!Ownership::is_former(child(json!({})).owner.as_ref().unwrap(), &deployment()));
    let status = written(decide(&observed(Found::Leaving(left))));
    assert_eq!(ready(&status), (false, "FormerChildLeaving".into()));
    assert!(!Conditions::is_true(&status.conditions, Conditions::STALLED));
}

#[test]
fn an_orphan_that_comes_from_the_same_rendering_is_taken_back() {
    let left = child(json!({"metadata": {"ownerReferences": null}}));
    assert!(matches!(decide(&observed(Found::Orphan(left))), Action::Apply { heals: true, .. }));
}

#[test]
fn a_refusal_stalls_and_names_itself() {
    let mut observed = observed(Found::Nothing);
    let message = "BasicReplicaSet \"web\" belongs to somebody".to_owned();
    observed.backoffs = Backoffs::of_everything(Failure::stalled("ChildNotOwned", message));
    let status = written(decide(&observed));
    assert!(Conditions::is_true(&status.conditions, Conditions::STALLED));
    assert_eq!(ready(&status), (false, "ChildNotOwned".into()));
    assert_eq!(status.blocked_by.unwrap().kind, "BasicDeployment");
}

#[test]
fn a_status_that_is_refused_is_not_written_again_and_stops_nothing_else() {
    let refused = Failure::stalled("StatusRefused", "");
    let settled = ours(json!({}));
    let step = decide(&settled).step();
    let held = || Backoffs::default().and_step(step, refused.clone());
    let held_up = Observed { backoffs: held(), ..settled };
    assert_eq!(decide(&held_up), Action::Settle);
    let unscaled = Observed { backoffs: held(), ..ours(json!({"spec": {"replicas": 1}})) };
    assert!(matches!(decide(&unscaled), Action::Scale { is_former: false, .. }));
    // The kit holds up everything for a step without a name.
    assert_ne!(step, "");
}

#[test]
fn while_children_are_not_known_the_last_numbers_stay() {
    let mut observed = ours(json!({"status": {"active": 3}}));
    let status = written(decide(&observed));
    assert_eq!((status.active, status.child.is_some()), (3, true));
    Arc::make_mut(&mut observed.deployment).status = Some(status.clone());
    observed.child = Found::Nothing;
    observed.is_blind = true;
    observed.backoffs = Backoffs::of_everything(Failure::transient("ChildrenNotObserved", ""));
    let blind = written(decide(&observed));
    assert_eq!(ready(&blind), (false, "ChildrenNotObserved".into()));
    assert_eq!((blind.active, blind.progress, blind.child), (3, status.progress, status.child));
}

#[test]
fn a_child_is_scaled_also_without_a_template() {
    let mut observed = ours(json!({"spec": {"replicas": 1}}));
    observed.desired = Err(Failure::stalled("TemplateNotFound", ""));
    assert!(matches!(decide(&observed), Action::Scale { is_former: false, .. }));
    observed.child = Found::Ours(child(json!({})));
    assert!(matches!(decide(&observed), Action::Refuse(_)));
}

#[test]
fn the_leaf_that_blocks_is_named_at_the_top() {
    let blocker = json!({"apiVersion": "v1", "kind": "Pod", "name": "web-x", "reason": "ImagePullBackOff", "message": "no such image"});
    let status = written(decide(&ours(json!({"status": {"active": 2, "blockedBy": blocker}}))));
    assert_eq!(status.blocked_by.as_ref().unwrap().name, "web-x");
    let message = &Conditions::find(&status.conditions, Conditions::READY).unwrap().message;
    assert_eq!(
        message,
        "2 of 3 replicas are serving; Pod web-x is not ready: ImagePullBackOff: no such image"
    );
}

#[test]
fn numbers_of_an_older_spec_are_not_believed() {
    assert!(!written(decide(&ours(json!({"metadata": {"generation": 2}})))).ready);
}

#[test]
fn a_child_that_says_it_is_not_ready_is_believed() {
    let conditions =
        json!([{"type": "Ready", "status": "False", "reason": "Replacing", "message": "1 is old"}]);
    assert!(!written(decide(&ours(json!({"status": {"conditions": conditions}})))).ready);
}

#[test]
fn a_rollout_that_does_not_move_is_reported_after_its_deadline() {
    let mut observed = ours(json!({"status": {"active": 1}}));
    let status = written(decide(&observed));
    assert!(Conditions::is_true(&status.conditions, Conditions::PROGRESSING));
    Arc::make_mut(&mut observed.deployment).status = Some(status);
    observed.since_progress = Duration::from_secs(590);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(10)));
    observed.since_progress = Duration::from_secs(600);
    let status = written(decide(&observed));
    assert_eq!(ready(&status), (false, "ProgressDeadlineExceeded".into()));
    assert!(Conditions::is_true(&status.conditions, Conditions::STALLED));
    assert!(!Conditions::is_true(&status.conditions, Conditions::PROGRESSING));
}

#[test]
fn numbers_that_came_to_rest_are_told_soon_also_while_paused() {
    let mut observed =
        ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}, "status": {"active": 2}}));
    spec(&mut observed).paused = true;
    Arc::make_mut(&mut observed.deployment).status = Some(written(decide(&observed)));
    observed.status_age = StatusAge::Written(Duration::from_secs(1));
    observed.child = Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "old"}}})));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(4)));
}

#[test]
fn what_others_say_in_conditions_of_their_own_is_no_reason_to_write() {
    let mut observed = ours(json!({}));
    let mut status = written(decide(&observed));
    let theirs =
        Conditions::new(1, observed.now).with("Theirs", false, "Seen", "").with_transition_times(&[]);
    status.conditions.splice(0..0, theirs);
    Arc::make_mut(&mut observed.deployment).status = Some(status);
    assert_eq!(decide(&observed), Action::Settle);
}

#[test]
fn what_is_being_deleted_is_left_alone() {
    let mut observed = observed(Found::Nothing);
    Arc::make_mut(&mut observed.deployment).metadata.deletion_timestamp = Some(Time(observed.now));
    assert!(matches!(decide(&observed), Action::Wait(_)), "it may be gone in a moment");
    let mut dying = ours(
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": {keys::HASH: "old"}}}),
    );
    dying.deployment = observed.deployment.clone();
    Arc::make_mut(&mut dying.deployment).metadata.deletion_timestamp = None;
    assert!(matches!(decide(&dying), Action::WriteStatus(_)), "its successor comes when it is gone");
}

#[test]
fn a_deletion_that_is_held_up_is_reported_once_with_what_holds_it() {
    let mut observed = ours(json!({}));
    let mut status = written(decide(&observed));
    assert!(status.ready);
    let metadata = &mut Arc::make_mut(&mut observed.deployment).metadata;
    metadata.deletion_timestamp = Some(Time(observed.now - SignedDuration::from_secs(5)));
    for (finalizers, blocker) in [
        (vec!["example.com/hold"], ("BasicDeployment", "web")),
        (vec!["foregroundDeletion", "example.com/hold"], ("BasicReplicaSet", "web")),
    ] {
        let deployment = Arc::make_mut(&mut observed.deployment);
        deployment.metadata.finalizers = Some(finalizers.into_iter().map(str::to_owned).collect());
        deployment.status = Some(status);
        status = written(decide(&observed));
        assert_eq!(ready(&status), (false, TERMINATING.to_owned()));
        let by = status.blocked_by.as_ref().unwrap();
        assert_eq!((by.kind.as_str(), by.name.as_str()), blocker);
        assert_eq!(
            (by.reason.as_str(), &by.since),
            (TERMINATING, &observed.deployment.metadata.deletion_timestamp)
        );
        // A dependent is not said to have the finalizer of its owner.
        assert_eq!(by.message.contains("example.com/hold"), by.kind == "BasicDeployment", "{by:?}");
        assert_eq!(status.active, 3, "the replicas still serve");
        assert!(Conditions::is_false(&status.conditions, Conditions::PROGRESSING));
        let mut told = observed.clone();
        Arc::make_mut(&mut told.deployment).status = Some(status.clone());
        assert_eq!(decide(&told), Action::Settle);
    }
}

#[test]
fn the_first_status_waits_for_readiness_but_not_with_what_blocks() {
    let mut observed = ours(json!({"status": {"active": 1}}));
    observed.status_age = StatusAge::Unwritten(Duration::from_secs(2));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(28)));
    observed.status_age = StatusAge::Unwritten(Duration::from_secs(30));
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
    let blocker = json!({"apiVersion": "v1", "kind": "Pod", "name": "web-x", "reason": "ImagePullBackOff"});
    observed.child = Found::Ours(child(json!({"status": {"active": 1, "blockedBy": blocker}})));
    observed.status_age = StatusAge::Unwritten(Duration::ZERO);
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}
