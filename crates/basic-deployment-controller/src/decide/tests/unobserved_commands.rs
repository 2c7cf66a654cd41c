//! What commands are told while children and revisions cannot be observed.

use operator_kit::report::Failure;

use super::{
    overtaking::rolled_back,
    queue::{outcome, restart, restarted, told, with},
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
    let mut unrecorded = blind(&[begun_rollback()]);
    unrecorded.revisions.clear();
    assert_eq!(told(decide(&unrecorded), "a"), outcome("Unknown", "ChildrenNotObserved"));
    let mut proven = unrecorded;
    let rejects = Rejects { hash: Some("bad".into()), command: Some("a".into()) };
    proven.revisions = vec![Arc::new(Revision { rejects, ..(*revision(1, NEW)).clone() })];
    assert_eq!(message(&decide(&proven), "a"), UNSEEN);
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
    let other = with(restarted("other", json!({})), &[restart("a", 10, begun(&late))]);
    let told_now = decide(&other);
    assert_eq!(told(told_now.clone(), "a"), outcome("False", "DeadlineExceeded"));
    assert!(message(&told_now, "a").contains("its effect remains"), "{}", message(&told_now, "a"));
}

#[test]
fn a_command_that_was_overtaken_before_its_deadline_names_the_rollback_also_after_it() {
    let mut observed = rolled_back();
    let stuck = observed.commands.iter_mut().flatten().find(|command| command.uid == "stuck").unwrap();
    Arc::make_mut(stuck).asks.as_mut().unwrap().deadline = Some(Duration::from_secs(60));
    assert_eq!(told(decide(&observed), "stuck"), outcome("False", "Superseded"));
}

#[test]
fn a_deleted_command_is_not_told_that_it_has_no_effect() {
    let deleted =
        json!({"metadata": {"deletionTimestamp": "1970-01-12T00:00:00Z", "finalizers": ["a.dev/b"]}});
    let told_now = decide(&blind(&[restart("a", 10, deleted)]));
    assert!(message(&told_now, "a").contains("is not known"), "{}", message(&told_now, "a"));
    let Action::Tell(news) = told_now else { panic!("{told_now:?}") };
    let accepted = conditions::find(&news[0].1.conditions, "Accepted").unwrap();
    assert_eq!(accepted.status, "Unknown");
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
