//! A rollback does not wait for a restart that is stuck.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    queue::{outcome, prepare, restart, restarted, rollback, told, with},
    *,
};
use crate::command_queue::Standing;

/// A begun restart and a later rollback; `changes` are merged over the child.
fn behind(changes: Value) -> Observed {
    let begun = json!({"status": {"startTime": "1970-01-01T00:00:11Z"}});
    let commands = [restart("stuck", 10, begun), restart("waits", 15, json!({})), rollback("undo", 20, 1)];
    let mut observed = with(restarted("stuck", changes), &commands);
    observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
    prepare(&mut observed);
    observed
}

fn stuck() -> Value {
    let blocker = json!({"apiVersion": "v1", "kind": "Pod", "name": "web-x", "reason": "ImagePullBackOff"});
    json!({"status": {"updated": 1, "blockedBy": blocker}})
}

#[test]
fn a_rollback_takes_the_turn_of_a_restart_that_is_stuck() {
    let stalled = json!([{"type": "Stalled", "status": "True", "reason": "X", "observedGeneration": 2}]);
    for changes in [stuck(), json!({"status": {"updated": 1, "conditions": stalled}})] {
        let Action::Apply { desired, .. } = decide(&behind(changes)) else { panic!() };
        assert_eq!(desired.hash, "good");
    }
}

#[test]
fn a_restart_that_goes_on_is_waited_for_until_nothing_has_moved_for_a_while() {
    let mut observed = behind(json!({"status": {"updated": 1}}));
    assert_eq!(told(decide(&observed), "undo"), outcome("Unknown", "Queued"));
    assert_eq!(commands::due_in(&observed, &CommandQueue::of(&observed)), Some(Duration::from_secs(30)));
    observed.since_progress = Duration::from_secs(30);
    prepare(&mut observed);
    assert!(matches!(decide(&observed), Action::Apply { .. }));
    assert_eq!(told(decide(&behind(json!({}))), "stuck"), outcome("True", "Complete"), "it is done");

    // It does not end while a former child does not go.
    let mut beside = behind(json!({}));
    beside.others = vec![child(json!({
        "metadata": {"name": "old", "uid": "old", "deletionTimestamp": "2026-01-01T00:00:00Z"},
    }))];
    assert_eq!(told(decide(&beside), "undo"), outcome("Unknown", "Queued"));
    beside.since_progress = Duration::from_secs(30);
    prepare(&mut beside);
    assert!(matches!(decide(&beside), Action::Apply { .. }));
}

#[test]
fn a_rollback_that_cannot_be_carried_out_ends_no_restart() {
    let mut observed = behind(stuck());
    observed.revisions.remove(0);
    prepare(&mut observed);
    let action = decide(&observed);
    assert_eq!(told(action.clone(), "undo"), outcome("False", "RevisionNotFound"));
    assert_eq!(told(action, "stuck"), outcome("Unknown", "Running"));
}

/// The state after the rollback took the turn of the restart, before its replicas serve.
pub(super) fn rolled_back() -> Observed {
    let mut observed = behind(stuck());
    let marks = json!({keys::HASH: "good", keys::LAST_COMMAND: "undo", keys::ROLLED_BACK_BY: "undo", keys::REJECTED_HASH: NEW});
    let mut on_good = restarted("undo", stuck());
    merge(&mut on_good, json!({"metadata": {"annotations": marks}}));
    observed.child = Found::Ours(child(on_good));
    observed.desired = Ok(Desired::new(&deployment(), rendered("good"), replica_sets()));
    let rejects = Rejects { hash: Some(NEW.into()), command: Some("undo".into()) };
    let held = Arc::new(Revision { rejects: rejects.clone(), ..(*revision(3, "good")).clone() });
    observed.revisions = vec![revision(2, NEW), held.clone()];
    observed.pin = Some(Pin { hash: "good".into(), revision: Some(held), rejects });
    prepare(&mut observed);
    observed
}

#[test]
fn the_restart_that_was_overtaken_names_the_rollback_and_the_one_that_waited_comes_after_it() {
    let action = decide(&rolled_back());
    assert_eq!(told(action.clone(), "stuck"), outcome("False", "Superseded"));
    assert_eq!(told(action.clone(), "undo"), outcome("Unknown", "Running"));
    assert_eq!(told(action.clone(), "waits"), outcome("Unknown", "Queued"));
    let Action::Tell(news) = action else { panic!() };
    let (_, status) = news.into_iter().find(|(command, _)| command.uid == "stuck").unwrap();
    let message = &conditions::find(&status.conditions, "Succeeded").unwrap().message;
    assert_eq!(message, "it had not ended, and the rollback \"undo\" replaces its replicas");
}

/// Gives a command of `of` a status: the time of its begin, and its outcome if it has ended.
fn has_begun(of: &mut Observed, uid: &str, at: i64, outcome: Option<(&str, &str)>) {
    let command = of.commands.iter_mut().flatten().find(|command| command.uid == uid).unwrap();
    let ended = outcome.map(|(status, reason)| {
        conditions::Conditions::new(1, of.now).with("Succeeded", status == "True", reason, "").since(&[])
    });
    let status = &mut Arc::make_mut(command).status;
    status.start_time = Some(Time(Timestamp::from_second(at).unwrap()));
    status.conditions = ended.unwrap_or_default();
}

#[test]
fn a_restart_that_runs_after_a_rollback_is_not_overtaken_by_it() {
    let mut observed = rolled_back();
    has_begun(&mut observed, "stuck", 11, Some(("False", "Superseded")));
    has_begun(&mut observed, "undo", 30, Some(("True", "Complete")));
    has_begun(&mut observed, "waits", 30, None);
    let Found::Ours(on_good) = &observed.child else { panic!() };
    let mut carrier = (**on_good).clone();
    merge(
        &mut carrier.object,
        json!({
            "metadata": {"annotations": {keys::LAST_COMMAND: "waits"}},
            "spec": {"restartedAt": "1970-01-01T00:00:15Z"},
        }),
    );
    observed.child = Found::Ours(Arc::new(carrier));
    prepare(&mut observed);
    assert_eq!(told(decide(&observed), "waits"), outcome("Unknown", "Running"));

    // A child that is re-created on the rendering that a rollback holds carries the rollback again.
    has_begun(&mut observed, "waits", 31, None);
    observed.child = rolled_back().child;
    prepare(&mut observed);
    let queue = CommandQueue::of(&observed);
    let (_, waits) = queue.iter().find(|(command, _)| command.uid == "waits").unwrap();
    assert!(!matches!(waits, Standing::Overtaken(_)));
}

#[test]
fn a_rollback_waits_for_another_rollback() {
    let mut observed = behind(stuck());
    let begun = rollback("before", 5, 2);
    let marks = json!({keys::LAST_COMMAND: "before", keys::ROLLED_BACK_BY: "before"});
    observed.child = Found::Ours(child(json!({
        "metadata": {"annotations": marks}, "status": {"active": 1},
    })));
    observed.commands = Some(vec![begun, rollback("undo", 20, 1)]);
    observed.since_progress = Duration::from_secs(60);
    prepare(&mut observed);
    assert!(observed.prepared.is_none());
    assert_eq!(CommandQueue::of(&observed).next(), None);
}
