//! The order of commands, and the report on each.

use catena_api::command::{ACCEPTED, SUCCEEDED};
use operator_kit::{
    report::conditions::{RECONCILING, STALLED},
    run::HeldUp,
};
use operator_watch::Failure;

use super::*;
use crate::step;

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
    confirm(&mut observed);
    observed
}

/// The same after the first of the commands was carried out.
pub(super) fn running(child: Value, commands: &[Arc<Command>]) -> Observed {
    let mut observed = with(child, commands);
    carry_out(&mut observed, &commands[0]);
    observed
}

/// A live read shows that the next command still waits.
pub(super) fn confirm(observed: &mut Observed) {
    observed.confirmed = CommandQueue::of(observed).next().map(|next| next.uid.clone());
}

/// The effect of a restart on the deployment, and the proof of any command.
pub(super) fn carry_out(observed: &mut Observed, command: &Command) {
    observed.recent = observed.recent.with(command.recent());
    if !command.is_rollback() {
        spec(observed).restarted_at = Some(command.token());
    }
    confirm(observed);
}

/// The uid of the command that a decision carries out.
pub(super) fn next(action: Action) -> String {
    match action {
        Action::CarryOut { command, .. } => command.uid.clone(),
        action => panic!("{action:?}"),
    }
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

/// A child under the token of a restart.
pub(super) fn restarted(changes: Value) -> Value {
    let mut child = json!({
        "metadata": {"generation": 2},
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
        assert_eq!(next(decide(&with(json!({}), &commands))), first);
    }
}

#[test]
fn a_restart_sets_its_token_and_its_proof_in_one_patch() {
    let observed = with(json!({}), &[restart("a", 10, json!({}))]);
    let Action::CarryOut { patch, .. } = decide(&observed) else { panic!() };
    let record = r#"[{"created":"1970-01-01T00:00:10Z","uid":"a"}]"#;
    let expected = json!({
        "metadata": {"annotations": {keys::COMMANDS: record}},
        "spec": {"restartedAt": "1970-01-01T00:00:10Z"},
    });
    assert_eq!(patch, expected);
}

#[test]
fn no_command_runs_while_another_one_does() {
    let commands = [restart("a", 10, json!({})), restart("b", 20, json!({}))];
    let under_way = restarted(json!({"status": {"updated": 1}}));
    let action = decide(&running(under_way.clone(), &commands));
    assert_eq!(told(action.clone(), "a"), outcome("Unknown", "Running"));
    assert_eq!(told(action, "b"), outcome("Unknown", "Queued"));
    // Also when an older one is bound late.
    let commands = [restart("a", 5, json!({})), restart("b", 10, json!({}))];
    let mut late = with(under_way, &commands);
    carry_out(&mut late, &commands[1]);
    assert_eq!(told(decide(&late), "a"), outcome("Unknown", "Queued"));
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
        let action = decide(&running(restarted(not_yet.clone()), &command));
        assert_eq!(told(action, "a"), outcome("Unknown", "Running"), "{not_yet}");
    }
    let action = decide(&running(restarted(json!({})), &command));
    assert_eq!(told(action, "a"), outcome("True", "Complete"));
}

#[test]
fn progress_counts_replicas_that_are_new_and_serve() {
    let command = [restart("a", 10, json!({}))];
    let mut observed = running(restarted(json!({"status": {"updated": 2, "active": 3}})), &command);
    let progress = |observed: &Observed| {
        let Some(Action::Tell(news)) = commands::tell(observed, &CommandQueue::of(observed)) else {
            panic!()
        };
        assert!(news[0].1.start_time.is_some());
        news[0].1.progress.clone()
    };
    assert_eq!(progress(&observed).as_deref(), Some("2/3"));
    observed.child = Found::Ours(child(json!({"status": {"updated": 3}})));
    assert_eq!(progress(&observed).as_deref(), Some("0/3"), "the child does not have the token yet");
}

#[test]
fn mere_progress_is_told_at_most_every_five_seconds() {
    let commands = [restart("a", 10, json!({}))];
    let mut observed = running(restarted(json!({"status": {"updated": 1}})), &commands);
    let Action::Tell(news) = decide(&observed) else { panic!() };
    let mut running = (*news[0].0).clone();
    running.status = news[0].1.clone();
    observed.commands = Some(vec![Arc::new(running)]);
    observed.child = Found::Ours(child(restarted(json!({"status": {"updated": 2}}))));
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
    assert_eq!(next(decide(&with(json!({}), &commands))), "b");
    let only = with(restarted(json!({})), &commands[..1]);
    assert!(matches!(decide(&only), Action::WriteStatus(_)));
}

#[test]
fn a_malformed_command_is_told_so_and_blocks_nobody() {
    let malformed = restart("a", 10, json!({"spec": {"targetRef": "web"}}));
    let observed = with(json!({}), &[malformed.clone(), restart("b", 20, json!({}))]);
    assert_eq!(next(decide(&observed)), "b");
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
    assert_eq!(next(decide(&with(json!({}), &[restart("a", 10, own_namespace)]))), "a");
}

#[test]
fn a_command_that_is_being_deleted_is_cancelled() {
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert!(matches!(decide(&with(json!({}), &[restart("a", 10, deleted)])), Action::WriteStatus(_)));
}

#[test]
fn what_was_not_looked_up_live_is_not_run() {
    let mut observed = with(json!({}), &[restart("a", 10, json!({}))]);
    observed.confirmed = None;
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn a_deadline_ends_a_command_that_waits_and_one_that_runs() {
    let late = json!({"spec": {"activeDeadlineSeconds": 60}});
    let mut observed = with(json!({}), &[restart("a", 10, late.clone())]);
    assert_eq!(told(decide(&observed), "a"), outcome("False", "DeadlineExceeded"));
    let slow = restarted(json!({"status": {"active": 1}}));
    let begun = running(slow.clone(), &[restart("a", 10, late.clone())]);
    assert_eq!(told(decide(&begun), "a"), outcome("False", "DeadlineExceeded"));
    observed.now = Timestamp::from_second(69).unwrap();
    confirm(&mut observed);
    assert_eq!(next(decide(&observed)), "a");
    let mut waiting = running(slow, &[restart("a", 10, late)]);
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
    let exchanged = running(restarted(json!({})), &[restart("a", 10, json!({}))]);
    let exchanged = with_contract(exchanged, |contract| contract.restarted_at = None);
    assert_eq!(told(decide(&exchanged), "a"), outcome("False", "ChildHasNoRestart"));
}

#[test]
fn a_restart_whose_token_somebody_changed_is_superseded() {
    let by_hand = json!({"spec": {"restartedAt": "by hand"}});
    let mut observed = running(restarted(by_hand), &[restart("a", 10, json!({}))]);
    spec(&mut observed).restarted_at = None;
    assert_eq!(told(decide(&observed), "a"), outcome("False", "Superseded"));
}

#[test]
fn commands_are_told_also_while_the_child_cannot_be_written() {
    let mut observed = running(restarted(json!({})), &[restart("a", 10, json!({}))]);
    observed.attempt = Attempt::Deferred(Failure::transient("Forbidden", ""));
    // After the own status, because the server may refuse the status of this command.
    let status = written(decide(&observed));
    Arc::make_mut(&mut observed.deployment).status = Some(status);
    assert_eq!(told(decide(&observed), "a"), outcome("True", "Complete"));
}

#[test]
fn nothing_runs_while_not_all_kinds_of_commands_are_known() {
    let mut observed = with(json!({}), &[restart("a", 10, json!({}))]);
    observed.commands = None;
    observed.confirmed = None;
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn a_command_that_could_not_be_told_keeps_neither_others_nor_the_status_from_being_told() {
    let commands = [restart("a", 10, json!({})), restart("b", 20, json!({}))];
    let mut observed = with(json!({}), &commands);
    observed.confirmed = None;
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
        confirm(&mut observed);
        observed.attempt = former::without(&decide(&observed), "Invalid", "no such field");
        assert_eq!(told(decide(&observed), "a"), outcome("Unknown", "Invalid"));
        observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}})));
        assert!(matches!(decide(&observed), Action::Scale { is_former: false, .. }));
        observed.child = Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "old"}}})));
        assert!(matches!(decide(&observed), Action::Apply { cause: Cause::Rendering, .. }));
    }
}

#[test]
fn a_token_that_the_server_refuses_is_told_and_holds_up_neither_scaling_nor_changes() {
    let mut observed = running(json!({}), &[restart("a", 10, json!({}))]);
    let handed = decide(&observed);
    assert!(
        matches!(&handed, Action::Restart { token, .. } if token == "1970-01-01T00:00:10Z"),
        "{handed:?}"
    );
    observed.attempt = former::without(&handed, "Invalid", "no such field");
    assert_eq!(told(decide(&observed), "a"), outcome("Unknown", "Invalid"));
    let said = status(&observed);
    assert_eq!(ready(&said), (false, "Invalid".into()), "older replicas are counted");
    let blocked = conditions::find(&said.conditions, "RestartBlocked").unwrap();
    assert_eq!((&*blocked.status, &*blocked.reason), ("True", "Invalid"));
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}})));
    assert!(matches!(decide(&observed), Action::Scale { is_former: false, .. }));
    observed.child = Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "old"}}})));
    assert!(matches!(decide(&observed), Action::Apply { cause: Cause::Rendering, .. }));
}
