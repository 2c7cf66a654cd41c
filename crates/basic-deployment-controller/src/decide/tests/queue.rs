//! The order of commands, and the report on each.

use catena_api::command::{ACCEPTED, SUCCEEDED};
use operator_kit::{
    report::{
        Failure,
        conditions::{RECONCILING, STALLED},
    },
    run::HeldUp,
};

use super::*;
use crate::{observed::Prepared, step};

pub(super) fn restart(uid: &str, second: i64, changes: Value) -> Arc<Command> {
    command(CommandKind::Restart, uid, second, changes)
}

pub(super) fn rollback(uid: &str, second: i64, to: i64) -> Arc<Command> {
    command(CommandKind::Rollback, uid, second, json!({"spec": {"toRevision": to}}))
}

/// A child in its desired state, with commands.
pub(super) fn with(child: Value, commands: &[Arc<Command>]) -> Observed {
    let mut observed = ours(child);
    observed.commands = Some(commands.to_vec());
    prepare(&mut observed);
    observed
}

/// Sets the results of the live look-ups.
pub(super) fn prepare(observed: &mut Observed) {
    observed.prepared = None;
    let Some(next) = CommandQueue::of(observed).next().cloned() else { return };
    let target = match next.asks.as_ref().unwrap().order {
        crate::command::Order::Restart => None,
        crate::command::Order::Rollback(to) => {
            let revision = rollback::target(to, observed).unwrap();
            let marks = rollback::marks(&next.uid, revision, observed);
            let desired =
                Desired::new(&observed.deployment, rendered(&revision.hash), replica_sets()).marked(marks);
            Some((desired, observed.child.clone()))
        }
    };
    observed.prepared = Some(Prepared { command: next.uid.clone(), target, is_taken_back: false });
}

/// The reported outcome of a command: the status and reason of its condition Succeeded.
pub(super) fn told(action: Action, uid: &str) -> (String, String) {
    let Action::Tell(news) = action else { panic!("{action:?}") };
    let (_, status) = news.into_iter().find(|(command, _)| command.uid == uid).unwrap();
    let condition = conditions::find(&status.conditions, SUCCEEDED).unwrap();
    assert_eq!(condition.status != "Unknown", status.completion_time.is_some());
    assert!(conditions::find(&status.conditions, ACCEPTED).is_some());
    // kstatus knows only these two: InProgress, Failed, and Current without either.
    for (type_, outcome) in [(RECONCILING, "Unknown"), (STALLED, "False")] {
        let found = conditions::find(&status.conditions, type_);
        assert_eq!(conditions::is_true(&status.conditions, type_), condition.status == outcome, "{type_}");
        assert!(found.is_none_or(|found| found.message == condition.message));
    }
    // Whoever applies this status replaces the default of the definition, which no apply can remove.
    assert!(conditions::find(&status.conditions, RECONCILING).is_some());
    assert!(conditions::find(&status.conditions, "Bound").is_none());
    (condition.status.clone(), condition.reason.clone())
}

pub(super) fn outcome(status: &str, reason: &str) -> (String, String) {
    (status.into(), reason.into())
}

/// A child on which a restart was carried out.
pub(super) fn restarted(uid: &str, changes: Value) -> Value {
    let mut child = json!({
        "metadata": {"generation": 2, "annotations": {keys::LAST_COMMAND: uid}},
        "spec": {"restartedAt": "1970-01-01T00:00:10Z"},
        "status": {"observedGeneration": 2, "updated": 3},
    });
    merge(&mut child, changes);
    child
}

#[test]
fn the_oldest_command_runs_first_and_uids_break_ties() {
    for (uids, first) in [([("b", 10), ("a", 20)], "b"), ([("b", 10), ("a", 10)], "a")] {
        let mut commands: Vec<_> =
            uids.iter().map(|(uid, second)| restart(uid, *second, json!({}))).collect();
        commands.sort_by(|a, b| (a.created, &a.uid).cmp(&(b.created, &b.uid)));
        let Action::Restart { command, .. } = decide(&with(json!({}), &commands)) else { panic!() };
        assert_eq!(command.uid, first);
    }
}

#[test]
fn no_command_runs_while_another_one_does() {
    let commands = [restart("a", 10, json!({})), restart("b", 20, json!({}))];
    let running = with(restarted("a", json!({"status": {"updated": 1}})), &commands);
    let action = decide(&running);
    assert_eq!(told(action.clone(), "a"), outcome("Unknown", "Running"));
    assert_eq!(told(action, "b"), outcome("Unknown", "Queued"));
    // Also when an older one is bound late.
    let commands = [restart("a", 5, json!({})), restart("b", 10, json!({}))];
    let running = with(restarted("b", json!({"status": {"updated": 1}})), &commands);
    assert_eq!(told(decide(&running), "a"), outcome("Unknown", "Queued"));
}

#[test]
fn a_restart_succeeds_when_all_replicas_are_new_and_serve() {
    let command = [restart("a", 10, json!({}))];
    for not_yet in [
        json!({"status": {"observedGeneration": 1}}),
        json!({"status": {"active": 2}}),
        json!({"status": {"updated": 2}}),
        json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
    ] {
        let action = decide(&with(restarted("a", not_yet.clone()), &command));
        assert_eq!(told(action, "a"), outcome("Unknown", "Running"), "{not_yet}");
    }
    let action = decide(&with(restarted("a", json!({})), &command));
    assert_eq!(told(action, "a"), outcome("True", "Complete"));
}

#[test]
fn progress_counts_replicas_that_are_new_and_serve() {
    let command = [restart("a", 10, json!({}))];
    let action = decide(&with(restarted("a", json!({"status": {"updated": 2, "active": 3}})), &command));
    let Action::Tell(news) = action else { panic!() };
    assert_eq!(news[0].1.progress.as_deref(), Some("2/3"));
    assert!(news[0].1.start_time.is_some());
}

#[test]
fn mere_progress_is_told_at_most_every_five_seconds() {
    let mut observed =
        with(restarted("a", json!({"status": {"updated": 1}})), &[restart("a", 10, json!({}))]);
    let Action::Tell(news) = decide(&observed) else { panic!() };
    let mut running = (*news[0].0).clone();
    running.status = news[0].1.clone();
    observed.commands = Some(vec![Arc::new(running)]);
    observed.child = Found::Ours(child(restarted("a", json!({"status": {"updated": 2}}))));
    observed.since_told = Some(Duration::from_secs(1));
    Arc::make_mut(&mut observed.deployment).status = Some(status(&observed));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(4)));
    observed.since_told = Some(Duration::from_secs(5));
    assert!(matches!(decide(&observed), Action::Tell(_)));
}

#[test]
fn a_command_that_has_ended_is_neither_run_nor_told_again() {
    let ended = json!({"status": {"conditions": [{
        "type": "Succeeded", "status": "False", "reason": "DeadlineExceeded", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }]}});
    let commands = [restart("a", 10, ended), restart("b", 20, json!({}))];
    let observed = with(json!({}), &commands);
    let Action::Restart { command, .. } = decide(&observed) else { panic!() };
    assert_eq!(command.uid, "b");
    let only = with(restarted("a", json!({})), &commands[..1]);
    assert!(matches!(decide(&only), Action::WriteStatus(_)));
}

#[test]
fn a_malformed_command_is_told_so_and_blocks_nobody() {
    let malformed = restart("a", 10, json!({"spec": {"targetRef": "web"}}));
    let observed = with(json!({}), &[malformed.clone(), restart("b", 20, json!({}))]);
    assert!(matches!(decide(&observed), Action::Restart { command, .. } if command.uid == "b"));
    assert_eq!(told(decide(&with(json!({}), &[malformed])), "a"), outcome("False", "Malformed"));
}

#[test]
fn a_command_whose_status_the_server_does_not_take_is_left_alone() {
    let malformed = restart("a", 10, json!({"spec": {"targetRef": "web"}}));
    let mut observed = with(json!({}), &[malformed]);
    observed.unheard.insert("a".into());
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn a_command_for_another_parent_or_namespace_is_not_run() {
    for other in [
        json!({"spec": {"targetRef": {"name": "api"}}}),
        json!({"spec": {"targetRef": {"name": "web", "namespace": "elsewhere"}}}),
    ] {
        let observed = with(json!({}), &[restart("a", 10, other.clone())]);
        assert_eq!(told(decide(&observed), "a"), outcome("Unknown", "NotTheTarget"));
        let mut late = other;
        late["spec"]["activeDeadlineSeconds"] = 60.into();
        let action = decide(&with(json!({}), &[restart("a", 10, late)]));
        assert_eq!(told(action, "a"), outcome("False", "DeadlineExceeded"));
    }
    let own_namespace = json!({"spec": {"targetRef": {"name": "web", "namespace": "shop"}}});
    assert!(matches!(decide(&with(json!({}), &[restart("a", 10, own_namespace)])), Action::Restart { .. }));
}

#[test]
fn a_command_that_is_being_deleted_is_cancelled() {
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert!(matches!(decide(&with(json!({}), &[restart("a", 10, deleted)])), Action::WriteStatus(_)));
}

#[test]
fn what_was_not_looked_up_live_is_not_run() {
    let mut observed = with(json!({}), &[restart("a", 10, json!({}))]);
    observed.prepared = None;
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn a_deadline_ends_a_command_that_waits_and_one_that_runs() {
    let late = json!({"spec": {"activeDeadlineSeconds": 60}});
    let mut observed = with(json!({}), &[restart("a", 10, late.clone())]);
    assert_eq!(told(decide(&observed), "a"), outcome("False", "DeadlineExceeded"));
    let running = with(restarted("a", json!({"status": {"active": 1}})), &[restart("a", 10, late.clone())]);
    assert_eq!(told(decide(&running), "a"), outcome("False", "DeadlineExceeded"));
    observed.now = Timestamp::from_second(69).unwrap();
    prepare(&mut observed);
    assert!(matches!(decide(&observed), Action::Restart { .. }));
    let mut waiting = with(restarted("a", json!({"status": {"active": 1}})), &[restart("a", 10, late)]);
    waiting.now = Timestamp::from_second(50).unwrap();
    Arc::make_mut(&mut waiting.deployment).status = Some(status(&waiting));
    let Action::Tell(news) = decide(&waiting) else { panic!() };
    let mut told = (*news[0].0).clone();
    told.status = news[0].1.clone();
    waiting.commands = Some(vec![Arc::new(told)]);
    assert_eq!(decide(&waiting), Action::Wait(Duration::from_secs(20)));
}

#[test]
fn a_paused_deployment_lets_commands_wait() {
    let mut observed = with(json!({}), &[restart("a", 10, json!({}))]);
    spec(&mut observed).paused = true;
    assert_eq!(told(decide(&observed), "a"), outcome("Unknown", "Paused"));
}

#[test]
fn a_child_without_a_restart_token_is_told() {
    let observed = with(json!({}), &[restart("a", 10, json!({}))]);
    let observed = with_contract(observed, |contract| contract.restarted_at = None);
    assert_eq!(told(decide(&observed), "a"), outcome("False", "ChildHasNoRestart"));
    let pruned = with(restarted("a", json!({"spec": {"restartedAt": null}})), &[restart("a", 10, json!({}))]);
    assert_eq!(told(decide(&pruned), "a"), outcome("False", "ChildHasNoRestart"));
}

#[test]
fn a_restart_whose_token_somebody_changed_is_superseded() {
    let changed = restarted("a", json!({"spec": {"restartedAt": "by hand"}}));
    assert_eq!(
        told(decide(&with(changed, &[restart("a", 10, json!({}))])), "a"),
        outcome("False", "Superseded")
    );
}

#[test]
fn commands_are_told_also_while_the_child_cannot_be_written() {
    let mut observed = with(restarted("a", json!({})), &[restart("a", 10, json!({}))]);
    observed.attempt = Attempt::Deferred(Failure::transient("Forbidden", ""));
    // After the own status, because the server may refuse the status of this command.
    let status = written(decide(&observed));
    Arc::make_mut(&mut observed.deployment).status = Some(status);
    assert_eq!(told(decide(&observed), "a"), outcome("True", "Complete"));
}

#[test]
fn a_child_that_bears_a_proof_does_not_go_before_it_is_told() {
    let older = json!({"spec": {"restartedAt": "1970-01-01T00:00:05Z"}});
    let mut observed = with(restarted("other", older), &[restart("a", 10, json!({}))]);
    observed.others = vec![child(json!({
        "metadata": {"name": "old", "uid": "old", "annotations": {keys::LAST_COMMAND: "a"}},
    }))];
    assert_eq!(told(decide(&observed), "a"), outcome("False", "Superseded"));
}

#[test]
fn nothing_runs_while_not_all_kinds_of_commands_are_known() {
    let mut observed = with(json!({}), &[restart("a", 10, json!({}))]);
    observed.commands = None;
    observed.prepared = None;
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn a_command_that_could_not_be_told_keeps_neither_others_nor_the_status_from_being_told() {
    let commands = [restart("a", 10, json!({})), restart("b", 20, json!({}))];
    let mut observed = with(json!({}), &commands);
    observed.prepared = None;
    let failure = Failure::stalled("StatusRefused", "a policy");
    observed.attempt = Attempt::Without(HeldUp::default().and_item(step::TELL, "a", failure.clone()));
    let Action::Tell(news) = decide(&observed) else { panic!("{:?}", decide(&observed)) };
    assert_eq!(news.iter().map(|(command, _)| command.uid.as_str()).collect::<Vec<_>>(), ["b"]);
    let both =
        HeldUp::default().and_item(step::TELL, "a", failure.clone()).and_item(step::TELL, "b", failure);
    observed.attempt = Attempt::Without(both);
    let Action::WriteStatus(status) = decide(&observed) else { panic!("{:?}", decide(&observed)) };
    assert!(!status.conditions.iter().any(|condition| condition.message.contains("a policy")));
}

#[test]
fn a_command_that_the_server_refuses_holds_up_neither_scaling_nor_changes() {
    for next in [restart("a", 10, json!({})), rollback("a", 10, 1)] {
        let mut observed = ours(json!({}));
        observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
        observed.commands = Some(vec![next]);
        prepare(&mut observed);
        observed.attempt = former::without(&decide(&observed), "Invalid", "no such field");
        assert_eq!(told(decide(&observed), "a"), outcome("Unknown", "Invalid"));
        observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}})));
        assert!(matches!(decide(&observed), Action::Scale { is_former: false, .. }));
        observed.child = Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "old"}}})));
        assert!(matches!(decide(&observed), Action::Apply { cause: Cause::Rendering, .. }));
    }
}
