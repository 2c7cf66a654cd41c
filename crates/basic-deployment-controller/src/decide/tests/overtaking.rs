//! A rollback goes first, and once it has run, all older commands end.

use super::{
    queue::{carry_out, confirm, next, outcome, restart, restarted, rollback, told, with},
    *,
};

/// A restart under way, one that waits, and a later rollback; `changes` are merged over the child.
fn behind(changes: Value) -> Observed {
    let commands =
        [restart("begun", 10, json!({})), restart("waits", 15, json!({})), rollback("undo", 20, 1)];
    let mut observed = with(restarted(changes), &commands);
    observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
    carry_out(&mut observed, &commands[0]);
    observed
}

/// The state after the rollback was carried out, before its replicas serve.
fn rolled_back() -> Observed {
    let mut observed = pinned(behind(json!({"status": {"updated": 1}})), "good");
    observed.child = Found::Ours(child(restarted(json!({
        "metadata": {"annotations": {keys::HASH: "good"}}, "status": {"updated": 1},
    }))));
    observed.revisions = vec![revision(2, NEW), revision(3, "good")];
    let undo = observed.commands.as_ref().unwrap()[2].clone();
    carry_out(&mut observed, &undo);
    observed
}

#[test]
fn a_rollback_waits_for_no_older_command() {
    assert_eq!(next(decide(&behind(json!({"status": {"updated": 1}})))), "undo");
}

#[test]
fn a_rollback_ends_the_restarts_of_its_second_whatever_their_uids_are() {
    for uid in ["a", "z"] {
        let commands = [restart(uid, 20, json!({})), rollback("undo", 20, 1)];
        let mut observed = with(restarted(json!({"status": {"updated": 1}})), &commands);
        observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
        carry_out(&mut observed, &commands[0]);
        assert_eq!(next(decide(&observed)), "undo");
        assert!(commands[0].order() < commands[1].order());
    }
}

#[test]
fn a_rollback_that_cannot_be_carried_out_ends_no_restart() {
    let mut observed = behind(json!({"status": {"updated": 1}}));
    observed.revisions.remove(0);
    confirm(&mut observed);
    let action = decide(&observed);
    assert_eq!(told(action.clone(), "undo"), outcome("False", "RevisionNotFound"));
    assert_eq!(told(action.clone(), "begun"), outcome("Unknown", "Running"));
    assert_eq!(told(action, "waits"), outcome("Unknown", "Queued"));
}

#[test]
fn all_older_commands_end_and_name_the_rollback() {
    let action = decide(&rolled_back());
    for uid in ["begun", "waits"] {
        assert_eq!(told(action.clone(), uid), outcome("False", "Superseded"));
    }
    assert_eq!(told(action.clone(), "undo"), outcome("Unknown", "Running"));
    let Action::Tell(news) = action else { panic!() };
    let message = &conditions::find(&news[0].1.conditions, "Succeeded").unwrap().message;
    assert_eq!(message, "it had not ended, and the rollback \"undo\" replaces its replicas");
}

#[test]
fn a_command_that_was_overtaken_before_its_deadline_names_the_rollback_also_after_it() {
    let mut observed = rolled_back();
    let begun = observed.commands.iter_mut().flatten().find(|command| command.uid == "begun").unwrap();
    Arc::make_mut(begun).asks.as_mut().unwrap().deadline = Some(Duration::from_secs(60));
    assert_eq!(told(decide(&observed), "begun"), outcome("False", "Superseded"));
}

#[test]
fn a_restart_that_is_newer_than_a_rollback_runs_to_its_end() {
    let commands = [rollback("late", 10, 1), restart("newer", 20, json!({}))];
    let mut observed = with(restarted(json!({"status": {"updated": 1}})), &commands);
    observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
    carry_out(&mut observed, &commands[1]);
    observed.child = Found::Ours(child(restarted(
        json!({"spec": {"restartedAt": commands[1].token()}, "status": {"updated": 1}}),
    )));
    let action = decide(&observed);
    assert_eq!(told(action.clone(), "late"), outcome("Unknown", "Queued"));
    assert_eq!(told(action, "newer"), outcome("Unknown", "Running"));
}

#[test]
fn a_rollback_does_not_wait_for_another_rollback() {
    let mut observed = rolled_back();
    observed.revisions.insert(0, revision(1, "older"));
    observed.commands.as_mut().unwrap().push(rollback("way-out", 30, 1));
    confirm(&mut observed);
    let Action::CarryOut { command, .. } = decide(&observed) else { panic!("{:?}", decide(&observed)) };
    carry_out(&mut observed, &command);
    observed.pin = Some(pin("older", NEW));
    let told_now = commands::tell(&observed, &CommandQueue::of(&observed)).unwrap();
    assert_eq!(told(told_now, "undo"), outcome("False", "Superseded"));
}
