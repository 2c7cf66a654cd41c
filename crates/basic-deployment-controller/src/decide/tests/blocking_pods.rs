//! The pod that keeps a child from serving, for a kind that does not report it.

use catena_api::BlockedBy;

use super::*;
use crate::{
    blocking_pod::{look_in, works_for},
    observed::Look,
    step,
};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A child of a kind with a mapping of its pods, of which some serve, and which has made no progress for a while.
fn mapped(status: Value, idle: u64) -> Observed {
    let mut object = fixtures::child_object("web", "child");
    merge(&mut object["status"], status);
    let contract = json!({"pods": {"selector": "status.selector"}});
    let kind: Arc<ChildKind> = Arc::new(ChildKind {
        contract: serde_json::from_value(contract).unwrap(),
        ..ChildKind::clone(&replica_sets())
    });
    let child = Child::of(serde_json::from_value(object).unwrap(), &kind);
    let mut observed = observed(Found::Ours(Arc::new(child)));
    observed.kinds = vec![fixtures::listed(kind)];
    observed.since_progress = seconds(idle);
    observed
}

fn stuck(idle: u64) -> Observed {
    mapped(json!({"active": 1}), idle)
}

fn pod() -> BlockedBy {
    let text = str::to_owned;
    BlockedBy {
        api_version: text("v1"),
        kind: text("Pod"),
        name: text("web-x"),
        reason: text("ImagePullBackOff"),
        message: text("no such host"),
        since: None,
        next_retry: None,
    }
}

fn looked(mut observed: Observed, age: u64, found: Result<Option<BlockedBy>, String>) -> Observed {
    observed.look = Some(Look { age: seconds(age), found });
    observed
}

/// The same observation, after its status was written.
fn reported(mut observed: Observed) -> Observed {
    let status = status(&observed);
    Arc::make_mut(&mut observed.deployment).status = Some(status);
    observed
}

#[test]
fn a_pod_is_looked_for_while_the_child_does_not_serve_and_reports_no_blocker() {
    assert_eq!(look_in(&stuck(5)), Some(Duration::ZERO));
    assert_eq!(look_in(&mapped(json!({"active": 3}), 5)), None, "it serves");
    assert_eq!(look_in(&ours(json!({"status": {"active": 1}}))), None, "its kind says nothing of pods");
    let blocker = json!({"apiVersion": "v1", "kind": "X", "name": "x", "reason": "Quota"});
    assert_eq!(look_in(&mapped(json!({"active": 1, "blockedBy": blocker}), 5)), None);
    assert_eq!(look_in(&mapped(json!({"active": 1, "observedGeneration": 0}), 5)), None, "it is behind");
    let mut failed = stuck(5);
    let failure = Failure::transient("Busy", "");
    failed.backoffs = Backoffs::of_everything(failure);
    assert_eq!(look_in(&failed), None, "it is backing off");
    let fight = Failure::transient("RepeatedWrites", "");
    failed.backoffs = Backoffs::default().and_step(step::HEAL_SCALE, fight);
    assert_eq!(look_in(&failed), Some(Duration::ZERO), "a fight about one field does not explain it");
    let told = status(&looked(failed, 0, Ok(Some(pod()))));
    assert_eq!(told.blocked_by.unwrap().reason, "RepeatedWrites");
    assert!(told.conditions[0].message.ends_with("; Pod web-x is not ready: ImagePullBackOff: no such host"));
}

#[test]
fn a_rollout_that_goes_on_is_not_looked_into() {
    assert_eq!([0, 1, 4].map(|idle| look_in(&stuck(idle))), [5, 4, 1].map(|left| Some(seconds(left))));
    let after = |idle, age| look_in(&looked(stuck(idle), age, Ok(None)));
    assert_eq!(after(2, 4), Some(seconds(3)), "it has moved since the last look");
}

#[test]
fn looks_are_repeated_less_often_while_nothing_moves() {
    let after = |idle, age| look_in(&looked(stuck(idle), age, Ok(None)));
    assert_eq!([after(6, 1), after(6, 5)], [Some(seconds(4)), Some(Duration::ZERO)]);
    assert_eq!([after(60, 5), after(60, 15)], [Some(seconds(10)), Some(Duration::ZERO)]);
    assert_eq!([after(6000, 29), after(6000, 30)], [Some(seconds(1)), Some(Duration::ZERO)]);
}

#[test]
fn a_reported_pod_is_looked_for_at_once_by_a_process_that_has_just_started() {
    let mut observed = reported(looked(stuck(60), 0, Ok(Some(pod()))));
    (observed.look, observed.since_progress) = (None, Duration::ZERO);
    assert_eq!(look_in(&observed), Some(Duration::ZERO));
}

#[test]
fn the_pod_is_named_and_the_pass_is_repeated_without_a_write() {
    let observed = reported(looked(stuck(8), 1, Ok(Some(pod()))));
    let told = observed.deployment.status.clone().unwrap();
    assert_eq!(told.blocked_by, Some(pod()));
    let (_, reason) = ready(&told);
    assert_eq!(reason, "Progressing");
    assert!(told.conditions[0].message.ends_with("; Pod web-x is not ready: ImagePullBackOff: no such host"));
    assert_eq!(decide(&observed), Action::Wait(seconds(4)));
    let due = looked(observed, 60, Ok(Some(pod())));
    assert_eq!(decide(&due), Action::Wait(seconds(1)), "never without a pause");
}

#[test]
fn the_pod_is_named_rather_than_a_child_that_is_stalled() {
    let stalled = json!([{"type": "Stalled", "status": "True", "reason": "Late", "message": ""}]);
    let observed = looked(mapped(json!({"active": 1, "conditions": stalled}), 60), 0, Ok(Some(pod())));
    let status = status(&observed);
    assert_eq!((ready(&status).1.as_str(), status.blocked_by), ("Late", Some(pod())));
}

#[test]
fn nothing_is_awaited_once_the_child_serves() {
    let serving = reported(mapped(json!({"active": 3}), 60));
    assert_eq!(decide(&serving), Action::Settle);
}

#[test]
fn a_pod_that_was_found_before_is_not_named_once_the_child_serves() {
    let mut serving = looked(mapped(json!({"active": 3}), 60), 1, Ok(Some(pod())));
    // It serves its own rendering, but that is not the desired one.
    serving.desired = Ok(Desired::new(&deployment(), rendered("newer"), replica_sets()));
    spec(&mut serving).paused = true;
    assert_eq!((status(&serving).ready, status(&serving).blocked_by), (false, None));
}

#[test]
fn pods_that_cannot_be_read_are_reported_with_the_reason() {
    let status = status(&looked(stuck(8), 0, Err("the pods cannot be read: forbidden".into())));
    assert_eq!(status.blocked_by, None);
    assert!(status.conditions[0].message.ends_with("are serving; the pods cannot be read: forbidden"));
}

#[test]
fn a_controller_of_pods_works_for_the_child_by_its_uid_and_revision() {
    let child = child(json!({"metadata": {"annotations": {"revision": "2"}}}));
    let works = |owner: &str, revision: &str, annotation: Value| {
        let kind = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "resource": "x", "revisionAnnotation": annotation});
        let owner = json!({"apiVersion": "v1", "kind": "X", "name": "web", "uid": owner, "controller": true});
        let metadata = json!({"annotations": {"revision": revision}, "ownerReferences": [owner]});
        let controller = serde_json::from_value(metadata).unwrap();
        works_for(&controller, &child, &serde_json::from_value(kind).unwrap())
    };
    assert!(works("child", "2", json!("revision")));
    assert!(!works("child", "1", json!("revision")), "it has a former template");
    assert!(!works("child", "2", json!("missing")), "nothing tells its template");
    assert!(!works("other", "2", json!("revision")));
    assert!(works("child", "1", Value::Null), "all its controllers have the current template");
}
