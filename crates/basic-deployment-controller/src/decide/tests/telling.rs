//! The content of the status.

use catena_api::reason::PROGRESS_DEADLINE_EXCEEDED;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use operator_kit::report::{Conditions, StatusAge};
use operator_watch::NextRetry;
use replica_contract::Pause;

use super::*;
use crate::{
    stall::{self, deadline_in},
    status::{CONDITIONS, minimum_age},
};

/// Status, reason and message of a condition; `None` if it does not exist.
fn said(status: &BasicDeploymentStatus, type_: &str) -> Option<[String; 3]> {
    let Condition { status, reason, message, .. } = Conditions::find(&status.conditions, type_)?;
    Some([status.clone(), reason.clone(), message.clone()])
}

fn held_up(is_stalled: bool, reason: &'static str) -> Backoffs {
    Backoffs::of_everything(Failure { is_stalled, ..Failure::transient(reason, "the server's words") })
}

#[test]
fn a_child_that_is_as_wanted_and_serves_is_complete() {
    let status = status(&ours(json!({})));
    assert_eq!(
        said(&status, Conditions::READY).unwrap(),
        ["True", "Complete", "3 of 3 replicas are serving"]
    );
    assert_eq!(
        said(&status, Conditions::PROGRESSING).unwrap(),
        ["True", "Complete", "3 of 3 replicas are serving"]
    );
    for absent in [Conditions::RECONCILING, Conditions::STALLED, "RolledBack"] {
        assert_eq!(said(&status, absent), None);
    }
    assert!(status.conditions.iter().all(|condition| CONDITIONS.contains(&condition.type_.as_str())));
    let child = status.child.unwrap();
    assert_eq!((child.kind.as_str(), child.name.as_str()), ("BasicReplicaSet", "web"));
    assert_eq!((child.uid.as_str(), child.hash.as_str()), ("child", NEW));
    assert_eq!((status.replicas, status.revision, status.observed_generation), (3, Some(1), Some(1)));
    assert_eq!(status.blocked_by, None);
}

#[test]
fn a_parameter_that_the_template_of_the_child_does_not_read_is_told_and_harms_nothing() {
    let mut observed = ours(json!({}));
    observed.unread = vec!["spec.parameters.prot (did you mean port?)".into()];
    let told = status(&observed);
    let expected = "the template \"default\" does not read spec.parameters.prot (did you mean port?); correct the name, or remove it";
    assert_eq!(said(&told, "UnreadParameters").unwrap(), ["True", "NotRead", expected]);
    assert_eq!(said(&told, Conditions::READY).unwrap()[0], "True");
    assert!(CONDITIONS.contains(&"UnreadParameters"), "it is owned, and goes when it is over");
    observed.unread.clear();
    assert_eq!(said(&status(&observed), "UnreadParameters"), None);
}

#[test]
fn the_time_of_the_next_retry_is_told_where_somebody_waits_for_it() {
    let at = Timestamp::from_second(1_000_160).unwrap();
    let mut observed = ours(json!({}));
    let mut told = |next_retry| {
        let failure =
            Failure { next_retry: Some(next_retry), ..Failure::transient("QuotaExceeded", "no room") };
        observed.backoffs = Backoffs::of_everything(failure);
        let status = status(&observed);
        let blocker = status.blocked_by.clone().unwrap();
        assert_eq!(blocker.message, "no room");
        let [_, _, message] = said(&status, Conditions::READY).unwrap();
        (message, blocker.next_retry)
    };
    assert_eq!(told(NextRetry::Soon), ("no room; it is retried within 75 s".into(), None));
    let message = "no room; it is retried at 1970-01-12T13:49:20Z at the latest";
    assert_eq!(told(NextRetry::At(at)), (message.into(), Some(Time(at))));
}

#[test]
fn the_next_retry_of_a_child_is_told_one_level_up() {
    let blocker = json!({
        "apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "name": "web", "reason": "QuotaExceeded",
        "message": "no room", "nextRetry": "1970-01-12T13:49:20Z",
    });
    let status = status(&ours(json!({"status": {"active": 1, "blockedBy": blocker}})));
    let [_, _, message] = said(&status, Conditions::READY).unwrap();
    assert!(message.ends_with("no room; it is retried at 1970-01-12T13:49:20Z at the latest"), "{message}");
    assert!(status.blocked_by.unwrap().next_retry.is_some());
}

#[test]
fn what_is_on_its_way_says_whether_its_rendering_changes() {
    let updating =
        status(&ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}, "status": {"active": 2}})));
    assert_eq!(
        said(&updating, Conditions::READY).unwrap(),
        ["False", "Updating", "2 of 3 replicas are serving"]
    );
    assert_eq!(
        said(&updating, Conditions::RECONCILING).unwrap(),
        ["True", "Updating", "2 of 3 replicas are serving"]
    );
    assert_eq!(updating.revision, None, "its revision is gone");
    let starting = status(&observed(Found::Nothing));
    assert_eq!(
        said(&starting, Conditions::READY).unwrap(),
        ["False", "Progressing", "0 of 3 replicas are serving"]
    );
    assert_eq!((starting.progress.as_str(), starting.child), ("0/3", None));
}

#[test]
fn a_child_that_is_stalled_stalls_its_parent_and_is_named_as_what_blocks() {
    let stalled =
        json!([{"type": "Stalled", "status": "True", "reason": "QuotaExceeded", "message": "no room"}]);
    let mut observed = ours(json!({"status": {"active": 1, "conditions": stalled}}));
    let first = status(&observed);
    let message = "1 of 3 replicas are serving; BasicReplicaSet web is not ready: QuotaExceeded: no room";
    assert_eq!(said(&first, Conditions::STALLED).unwrap(), ["True", "QuotaExceeded", message]);
    assert_eq!(said(&first, Conditions::PROGRESSING).unwrap(), ["False", "QuotaExceeded", message]);
    assert_eq!(said(&first, Conditions::RECONCILING), None);
    let blocker = first.blocked_by.clone().unwrap();
    assert_eq!((blocker.kind.as_str(), blocker.name.as_str()), ("BasicReplicaSet", "web"));
    assert_eq!(blocker.since, Some(Time(observed.now)));
    // It is the same one later.
    Arc::make_mut(&mut observed.deployment).status = Some(first);
    observed.now += Duration::from_secs(60);
    assert_eq!(status(&observed).blocked_by, Some(blocker));
}

#[test]
fn a_failure_blocks_in_its_own_name_and_stalls_only_where_it_waits_for_a_change() {
    let mut observed = ours(json!({}));
    observed.backoffs = held_up(true, "Invalid");
    let refused = status(&observed);
    assert_eq!(said(&refused, Conditions::STALLED).unwrap(), ["True", "Invalid", "the server's words"]);
    let blocker = refused.blocked_by.unwrap();
    assert_eq!((blocker.kind.as_str(), blocker.name.as_str()), ("BasicDeployment", "web"));
    assert_eq!((blocker.reason.as_str(), blocker.message.as_str()), ("Invalid", "the server's words"));
    observed.backoffs = held_up(false, "ServerBusy");
    let busy = status(&observed);
    assert_eq!(said(&busy, Conditions::STALLED), None);
    assert_eq!(said(&busy, Conditions::RECONCILING).unwrap(), ["True", "ServerBusy", "the server's words"]);
    assert!(!busy.ready, "it is not known whether it is as wanted");
}

#[test]
fn a_child_that_is_paused_is_named_runs_out_of_no_time_and_is_ready_if_it_serves() {
    let paused = |mut observed: Observed| {
        let Found::Ours(child) = &mut observed.child else { panic!() };
        let pause = Pause { reason: "StepReached".into(), message: "somebody has to go on".into() };
        Arc::make_mut(child).outputs.paused = Some(pause);
        observed.since_progress = Duration::from_secs(6000);
        observed
    };
    let waiting = paused(ours(json!({"status": {"active": 1}})));
    let told = status(&waiting);
    let message =
        "1 of 3 replicas are serving; BasicReplicaSet web is paused: StepReached: somebody has to go on";
    assert_eq!(said(&told, Conditions::READY).unwrap(), ["False", "ChildPaused", message]);
    assert_eq!(said(&told, Conditions::PROGRESSING).unwrap()[0], "False");
    assert_eq!((said(&told, Conditions::STALLED), said(&told, Conditions::RECONCILING)), (None, None));
    let blocker = told.blocked_by.unwrap();
    assert_eq!((&*blocker.kind, &*blocker.name, &*blocker.reason), ("BasicReplicaSet", "web", "StepReached"));
    assert_eq!(deadline_in(&waiting), None);
    assert_eq!(said(&status(&paused(ours(json!({})))), Conditions::READY).unwrap()[1], "Complete");
}

#[test]
fn a_child_whose_controller_has_stopped_is_named_instead_of_its_last_blocker() {
    let blocker = json!({"apiVersion": "v1", "kind": "Pod", "name": "web-x", "reason": "ImagePullBackOff"});
    let mut late =
        ours(json!({"metadata": {"generation": 2}, "status": {"active": 1, "blockedBy": blocker}}));
    let reason = |observed: &Observed| status(observed).blocked_by.unwrap().reason;
    late.behind_for = Duration::from_secs(59);
    assert_eq!(reason(&late), "ImagePullBackOff");
    assert_eq!(stall::silence_in(&late), Some(Duration::from_secs(1)));
    late.behind_for = Duration::from_secs(60);
    assert_eq!((reason(&late).as_str(), stall::silence_in(&late)), ("NotReported", None));
    let [_, _, message] = said(&status(&late), Conditions::READY).unwrap();
    let told = "BasicReplicaSet web is not ready: NotReported: it reports no more: contract.observedGeneration (status.observedGeneration) is 1, and metadata.generation is 2";
    assert!(message.contains(told), "{message}");
    assert_eq!(stall::silence_in(&ours(json!({}))), None, "it reports");
}

#[test]
fn a_first_report_that_comes_after_a_short_deadline_is_not_told_as_missing() {
    let mut new = ours(json!({"status": {"active": 0, "observedGeneration": null, "conditions": null}}));
    spec(&mut new).progress_deadline_seconds = 5;
    (new.since_progress, new.behind_for) = (Duration::from_secs(10), Duration::from_secs(10));
    let early = status(&new);
    let [_, reason, message] = said(&early, Conditions::STALLED).unwrap();
    assert_eq!(reason, PROGRESS_DEADLINE_EXCEEDED);
    assert!(!message.contains("its controller does not run"), "{message}");
    assert_eq!(early.blocked_by, None);
    new.behind_for = Duration::from_secs(60);
    assert_eq!(status(&new).blocked_by.unwrap().reason, "NotReported");
}

#[test]
fn a_stall_with_the_spec_before_is_not_told_for_the_present_one() {
    let stalled = json!([{"type": "Stalled", "status": "True", "reason": "Late", "message": "old"}]);
    let changes = |observed: i64| json!({"status": {"observedGeneration": observed, "active": 1, "conditions": stalled}});
    let is_stalled =
        |observed: &Observed| Conditions::is_true(&status(observed).conditions, Conditions::STALLED);
    let generation = child(json!({})).generation;
    assert!(is_stalled(&ours(changes(generation))));
    assert!(!is_stalled(&ours(changes(generation - 1))));
}

#[test]
fn what_is_paused_neither_goes_on_nor_is_stalled() {
    for child in
        [Found::Nothing, Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "old"}}})))]
    {
        let mut observed = observed(child);
        spec(&mut observed).paused = true;
        observed.since_progress = Duration::from_secs(6000);
        let status = status(&observed);
        let [ready, reason, message] = said(&status, Conditions::READY).unwrap();
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "Paused"));
        assert!(message.contains("; spec.paused is true, so that no"), "{message}");
        assert_eq!(said(&status, Conditions::PROGRESSING).unwrap()[0], "False");
        assert_eq!(
            (said(&status, Conditions::STALLED), said(&status, Conditions::RECONCILING)),
            (None, None)
        );
    }
}

#[test]
fn a_rollback_is_told_with_its_revision_while_it_holds_the_child() {
    let mut observed = ours(json!({}));
    observed.pin = Some(pin(NEW, "bad"));
    let [is, reason, message] = said(&status(&observed), "RolledBack").unwrap();
    assert_eq!((is.as_str(), reason.as_str()), ("True", "Rollback"));
    assert!(message.starts_with("revision 1 stays until the spec or the template changes"), "{message}");
    observed.desired = Err(revision::gone(NEW));
    assert_eq!(said(&status(&observed), "RolledBack"), None, "nothing holds it there");
}

#[test]
fn a_wanted_child_that_is_being_deleted_is_named() {
    let deleted = json!({"deletionTimestamp": "1970-01-01T00:00:10Z", "finalizers": ["example.com/hold"]});
    let told = status(&ours(json!({"metadata": deleted, "status": {"active": 1}})));
    let blocker = told.blocked_by.clone().unwrap();
    assert_eq!((&*blocker.kind, &*blocker.name, &*blocker.reason), ("BasicReplicaSet", "web", "Terminating"));
    let [_, _, message] = said(&told, Conditions::READY).unwrap();
    assert!(message.contains("; BasicReplicaSet web is not ready: Terminating: "), "{message}");
}

#[test]
fn a_former_child_that_leaves_is_named() {
    let left = child(json!({"metadata": {"name": "old"}}));
    let [_, reason, message] = said(&status(&observed(Found::Leaving(left))), Conditions::READY).unwrap();
    assert_eq!(reason, "FormerChildLeaving");
    assert!(message.starts_with("BasicReplicaSet \"old\" of a former BasicDeployment"), "{message}");
}

#[test]
fn what_others_wait_for_is_told_at_once_and_numbers_when_they_have_come_to_rest() {
    let serving = ours(json!({}));
    let starting = ours(json!({"status": {"active": 1}}));
    let blocker = |name: &str, reason: &str| {
        let blocker = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "reason": reason});
        ours(json!({"status": {"active": 1, "blockedBy": blocker}}))
    };
    let between = |before: &Observed, after: &Observed| minimum_age(&status(before), &status(after), after);
    assert_eq!(between(&starting, &serving), StatusAge::NOW, "it is ready");
    assert_eq!(between(&starting, &blocker("a", "ImagePullBackOff")), StatusAge::NOW);
    assert_eq!(between(&blocker("a", "Pulling"), &blocker("a", "ImagePullBackOff")), StatusAge::NOW);
    assert_eq!(between(&blocker("a", "Pulling"), &blocker("b", "Pulling")), StatusAge::STABLE);
    assert_eq!(between(&observed(Found::Nothing), &starting), StatusAge::PROGRESSING);
    let recorded = |number| {
        let numbered_at = Some(Time(Timestamp::UNIX_EPOCH));
        let revision = Revision { numbered_at, ..Revision::clone(&revision(number, NEW)) };
        Observed { revisions: vec![revision.into()], ..starting.clone() }
    };
    assert_eq!(between(&recorded(1), &recorded(2)), StatusAge::NOW, "a rollback goes by it");
    assert_eq!(between(&starting, &recorded(1)), StatusAge::PROGRESSING, "there is nothing to go back to");
    let leaving = observed(Found::Leaving(child(json!({"metadata": {"name": "old"}}))));
    assert_eq!(between(&observed(Found::Nothing), &leaving), StatusAge::NOW, "somebody may have to act");
}

#[test]
fn the_deadline_runs_only_while_something_is_waited_for() {
    let mut observed = ours(json!({"status": {"active": 1}}));
    observed.since_progress = Duration::from_secs(599);
    assert_eq!(deadline_in(&observed), Some(Duration::from_secs(1)));
    assert_eq!(deadline_in(&ours(json!({}))), None, "it is ready");
    let mut paused = observed.clone();
    spec(&mut paused).paused = true;
    assert_eq!(deadline_in(&paused), None);
    let mut failed = observed.clone();
    failed.backoffs = held_up(false, "ServerBusy");
    assert_eq!(deadline_in(&failed), None);
    observed.since_progress = Duration::from_secs(600);
    assert_eq!(deadline_in(&observed), None, "it has passed");
}

#[test]
fn a_stall_that_a_former_leader_reported_is_not_taken_back_by_the_next_one_before_anything_moves() {
    let mut stalled = ours(json!({"status": {"active": 1}}));
    let deadline = stall::deadline(&stalled.deployment);
    stalled.since_progress = deadline;
    let told = status(&stalled);
    assert_eq!(said(&told, Conditions::STALLED).unwrap()[1], PROGRESS_DEADLINE_EXCEEDED);

    let reported = |status: &BasicDeploymentStatus, child: Value| {
        let mut seen = ours(child);
        Arc::make_mut(&mut seen.deployment).status = Some(status.clone());
        stall::reported(&seen.deployment, seen.child.ours().map(AsRef::as_ref), &[])
    };
    let same = json!({"status": {"active": 1}});
    assert_eq!(reported(&told, same.clone()), deadline);
    for (what, child) in [
        ("another replica serves", json!({"status": {"active": 2}})),
        ("another child", json!({"metadata": {"uid": "other"}, "status": {"active": 1}})),
        (
            "another rendering",
            json!({"metadata": {"annotations": {keys::HASH: "old"}}, "status": {"active": 1}}),
        ),
    ] {
        assert_eq!(reported(&told, child), Duration::ZERO, "{what}");
    }
    let former = BasicDeploymentStatus { observed_generation: Some(0), ..told.clone() };
    assert_eq!(reported(&former, same.clone()), Duration::ZERO, "the spec was changed");
    stalled.since_progress = Duration::ZERO;
    assert_eq!(reported(&status(&stalled), same), Duration::ZERO, "no stall was reported");
}

#[test]
fn a_word_of_the_child_is_not_taken_for_a_report_of_its_parent() {
    for own in [PROGRESS_DEADLINE_EXCEEDED, "Paused"] {
        let conditions = json!([{"type": "Stalled", "status": "True", "reason": own, "message": "late"}]);
        let mut observed = ours(json!({"status": {"active": 1, "conditions": conditions}}));
        let told = status(&observed);
        assert_eq!(said(&told, Conditions::STALLED).unwrap()[1], format!("Child{own}"));
        assert_eq!(told.blocked_by.as_ref().unwrap().reason, own, "the child is named with its own word");
        // The next leader sees a child that has gone on.
        observed = ours(json!({"status": {"active": 1}}));
        Arc::make_mut(&mut observed.deployment).status = Some(told);
        let child = observed.child.ours().map(AsRef::as_ref);
        assert_eq!(stall::reported(&observed.deployment, child, &[]), Duration::ZERO);
    }
}

#[test]
fn a_stalled_exchange_is_not_taken_back_either() {
    let mut stalled = ours(json!({"status": {"active": 1}}));
    let former = |active: i32| {
        child(json!({"metadata": {"uid": "former", "name": "former"}, "status": {"active": active}}))
    };
    stalled.others = vec![former(2)];
    let deadline = stall::deadline(&stalled.deployment);
    stalled.since_progress = deadline;
    let told = status(&stalled);
    assert_eq!(told.active, 3);
    Arc::make_mut(&mut stalled.deployment).status = Some(told);
    let reported = |others: &[Arc<Child>]| {
        stall::reported(&stalled.deployment, stalled.child.ours().map(AsRef::as_ref), others)
    };
    assert_eq!(reported(&stalled.others), deadline);
    assert_eq!(reported(&[former(3)]), Duration::ZERO, "another replica serves");
    assert_eq!(reported(&[former(1)]), deadline, "one that no longer serves is no progress");
}
