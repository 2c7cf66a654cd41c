//! What commands are told while children and revisions cannot be observed.

use operator_watch::Failure;

use super::{
    queue::{carry_out, outcome, restart, restarted, told, with},
    *,
};

const UNSEEN: &str = "the watch of BasicReplicaSets fails";

/// A `BasicDeployment` whose own status already says that its children cannot be observed.
fn blind(commands: &[Arc<Command>]) -> Observed {
    let mut observed = observed(Found::Nothing);
    observed.is_blind = true;
    observed.attempt = Attempt::Deferred(Failure::transient("ChildrenNotObserved", UNSEEN));
    observed.commands = Some(commands.to_vec());
    Arc::make_mut(&mut observed.deployment).status = Some(status(&observed));
    observed
}

/// The spec and status of a command that has begun.
fn begun(spec: &Value) -> Value {
    json!({"spec": spec, "status": {"startTime": "1970-01-01T00:00:11Z"}})
}

fn begun_rollback() -> Arc<Command> {
    command(CommandKind::Rollback, "a", 10, begun(&json!({"toRevision": 1})))
}

fn message(action: &Action, uid: &str) -> String {
    let Action::Tell(news) = action else { panic!("{action:?}") };
    let (_, status) = news.iter().find(|(command, _)| command.uid == uid).unwrap();
    conditions::find(&status.conditions, "Succeeded").unwrap().message.clone()
}

#[test]
fn a_begun_restart_and_a_waiting_one_are_told_that_children_are_not_observed() {
    let told_now = decide(&blind(&[restart("a", 10, begun(&json!({}))), restart("b", 20, json!({}))]));
    for uid in ["a", "b"] {
        assert_eq!(told(told_now.clone(), uid), outcome("Unknown", "ChildrenNotObserved"));
        assert_eq!(message(&told_now, uid), UNSEEN);
    }
}

#[test]
fn a_deadline_that_passes_meanwhile_denies_no_effect() {
    let late = json!({"activeDeadlineSeconds": 60});
    let commands = [restart("a", 10, begun(&late)), restart("b", 20, json!({"spec": late}))];
    let told_now = decide(&blind(&commands));
    for uid in ["a", "b"] {
        assert_eq!(told(told_now.clone(), uid), outcome("False", "DeadlineExceeded"));
    }
    assert!(message(&told_now, "a").contains("its effect remains"), "{}", message(&told_now, "a"));
    assert!(message(&told_now, "b").contains("has not reported"), "{}", message(&told_now, "b"));
}

#[test]
fn a_begun_rollback_is_not_superseded_by_revisions_that_are_not_seen() {
    let mut unrecorded = pinned(blind(&[begun_rollback()]), "good");
    unrecorded.revisions.clear();
    Arc::make_mut(&mut unrecorded.deployment).status = Some(status(&unrecorded));
    assert_eq!(told(decide(&unrecorded), "a"), outcome("Unknown", "ChildrenNotObserved"));
    assert_eq!(message(&decide(&unrecorded), "a"), UNSEEN);
}

#[test]
fn a_command_that_cannot_be_read_or_names_another_object_is_told_so_also_then() {
    let malformed = restart("a", 10, json!({"spec": {"targetRef": "web"}}));
    let misdirected = restart("b", 20, json!({"spec": {"targetRef": {"name": "api"}}}));
    let told_now = decide(&blind(&[malformed, misdirected]));
    assert_eq!(told(told_now.clone(), "a"), outcome("False", "Malformed"));
    assert_eq!(told(told_now, "b"), outcome("Unknown", "NotTheTarget"));
}

#[test]
fn a_deadline_that_passed_after_the_begin_was_reported_is_told_with_the_effect() {
    let late = json!({"activeDeadlineSeconds": 60});
    let slow = restarted(json!({"status": {"updated": 1}}));
    let told_now = decide(&with(slow, &[restart("a", 10, begun(&late))]));
    assert_eq!(told(told_now.clone(), "a"), outcome("False", "DeadlineExceeded"));
    assert!(message(&told_now, "a").contains("its effect remains"), "{}", message(&told_now, "a"));
}

#[test]
fn a_deleted_command_is_told_whether_it_had_begun_by_the_record_of_its_target() {
    let deleted =
        json!({"metadata": {"deletionTimestamp": "1970-01-12T00:00:00Z", "finalizers": ["a.dev/b"]}});
    let command = restart("a", 10, deleted);
    let mut blind = blind(std::slice::from_ref(&command));
    let said = message(&decide(&blind), "a");
    assert!(said.ends_with("it is not carried out"), "{said}");
    carry_out(&mut blind, &command);
    Arc::make_mut(&mut blind.deployment).status = Some(status(&blind));
    let said = message(&decide(&blind), "a");
    assert!(said.ends_with("its effect remains"), "{said}");
}

#[test]
fn a_deleted_command_that_was_told_so_before_is_told_nothing_else() {
    let mut deleted =
        json!({"metadata": {"deletionTimestamp": "1970-01-12T00:00:00Z", "finalizers": ["a.dev/b"]}});
    let seen = with(json!({}), &[restart("a", 10, deleted.clone())]);
    let Action::Tell(news) = decide(&seen) else { panic!("{:?}", decide(&seen)) };
    assert!(news[0].1.conditions.iter().any(|condition| condition.status == "False"));
    deleted["status"] = serde_json::to_value(&news[0].1).unwrap();
    let unseen = decide(&blind(&[restart("a", 10, deleted)]));
    assert!(!matches!(unseen, Action::Tell(_)), "{unseen:?}");
}
