//! A restart is carried out once: replicas that are newer need no second replacement.

use catena_api::command::SUCCEEDED;

use super::{
    queue::{outcome, restart, restarted, told, with},
    *,
};
use crate::restarts::lost;

/// The token that a decision sets, if it carries out a restart.
fn token_set(action: Action) -> Option<String> {
    match action {
        Action::Restart { token, .. } => token,
        action => panic!("{action:?}"),
    }
}

fn message(action: Action) -> String {
    let Action::Tell(news) = action else { panic!("{action:?}") };
    conditions::find(&news[0].1.conditions, SUCCEEDED).unwrap().message.clone()
}

#[test]
fn a_new_child_is_made_under_the_token_of_the_newest_restart() {
    let commands = [restart("a", 10, json!({})), restart("b", 20, json!({}))];
    let mut missing = observed(Found::Nothing);
    missing.commands = Some(commands.to_vec());
    let Action::Create { desired: made, .. } = decide(&missing) else { panic!() };
    assert_eq!(made.token.as_deref(), Some("1970-01-01T00:00:20Z"));
    assert_eq!(made.object, desired().object, "it is no part of the rendering");

    let made = with(json!({"spec": {"restartedAt": made.token}}), &commands);
    assert_eq!(token_set(decide(&made)), None, "its replicas are newer than both");
}

#[test]
fn restarts_that_failed_or_are_for_others_give_a_new_child_no_token() {
    let failed = json!({"status": {"conditions": [{
        "type": "Succeeded", "status": "False", "reason": "DeadlineExceeded", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }]}});
    let other = json!({"spec": {"targetRef": {"name": "api"}}});
    let mut missing = observed(Found::Nothing);
    missing.commands = Some(vec![restart("a", 10, failed), restart("b", 20, other)]);
    assert_eq!(decide(&missing), create(desired()));
    missing.commands = Some(vec![restart("c", 30, json!({}))]);
    let missing = with_contract(missing, |contract| contract.restarted_at = None);
    let Action::Create { desired, .. } = decide(&missing) else { panic!() };
    assert_eq!(desired.token, None);
}

#[test]
fn a_token_is_only_ever_raised() {
    let tokens = [
        (None, true),
        (Some("1970-01-01T00:00:05Z"), true),
        (Some("1970-01-01T00:00:10Z"), false),
        (Some("1970-01-01T00:00:30Z"), false),
        (Some("by hand"), true),
        // Nobody has requested a restart at that time, so replicas with this token may be older.
        (Some("9999-12-31T23:59:59Z"), true),
    ];
    for (token, is_set) in tokens {
        let waits = with(json!({"spec": {"restartedAt": token}}), &[restart("a", 10, json!({}))]);
        assert_eq!(token_set(decide(&waits)).is_some(), is_set, "{token:?}");
    }
}

#[test]
fn a_token_of_a_server_whose_clock_is_ahead_is_believed() {
    let commands = [restart("a", 2_000_000, json!({})), restart("b", 2_000_001, json!({}))];
    let child = json!({"spec": {"restartedAt": commands[1].token()}});
    assert_eq!(token_set(decide(&with(child, &commands))), None);
}

#[test]
fn a_finished_restart_whose_status_is_wiped_succeeds_again_without_replacing_anything() {
    // The last one has a proof of its own; an earlier one is covered by the token of a later one.
    let last = with(restarted("a", json!({})), &[restart("a", 10, json!({}))]);
    assert_eq!(told(decide(&last), "a"), outcome("True", "Complete"));
    let later = json!({"spec": {"restartedAt": "1970-01-01T00:00:20Z"}});
    let earlier = with(restarted("b", later.clone()), &[restart("a", 10, json!({}))]);
    assert_eq!(token_set(decide(&earlier)), None);
    let borne = with(restarted("a", later), &[restart("a", 10, json!({}))]);
    assert_eq!(told(decide(&borne), "a"), outcome("True", "Complete"));
    assert!(message(decide(&borne)).contains("together with a later restart"));
}

#[test]
fn restarts_of_one_second_say_that_they_were_served_together() {
    let all = [restart("a", 10, json!({})), restart("b", 10, json!({})), restart("c", 11, json!({}))];
    for (count, says) in [(1, None), (2, Some("another restart of the same second")), (3, Some("another"))] {
        let told = message(decide(&with(restarted("a", json!({})), &all[..count])));
        match says {
            None => assert_eq!(told, "all replicas are new and serving"),
            Some(says) => assert!(told.contains("together") && told.contains(says), "{told}"),
        }
    }
}

#[test]
fn a_child_that_took_over_and_is_new_enough_serves_the_restart() {
    let mut observed = with(restarted("other", json!({})), &[restart("a", 10, json!({}))]);
    let former = |active: i32| {
        child(json!({
            "metadata": {"name": "old", "uid": "old", "annotations": {keys::LAST_COMMAND: "a"}},
            "spec": {"replicas": active}, "status": {"active": active, "ready": active > 0},
        }))
    };
    observed.others = vec![former(0)];
    assert_eq!(told(decide(&observed), "a"), outcome("True", "Complete"));
    observed.others = vec![former(1)];
    assert_eq!(told(decide(&observed), "a"), outcome("Unknown", "Running"), "one replica is an old one");
    assert_eq!(message(decide(&observed)), "replicas of the former BasicReplicaSet \"old\" still serve");
}

#[test]
fn a_restart_whose_token_somebody_takes_back_is_not_carried_out_a_second_time() {
    let begun = [restart("a", 10, json!({"status": {"startTime": "1970-01-01T00:00:11Z"}}))];
    // `kubectl rollout undo` takes the annotation back together with the token.
    let mut undone = with(json!({}), &begun);
    assert!(lost(&begun[0], &undone).is_some());
    undone.prepared.as_mut().unwrap().is_taken_back = true;
    assert_eq!(told(decide(&undone), "a"), outcome("False", "Superseded"));
    undone.prepared.as_mut().unwrap().is_taken_back = false;
    assert!(matches!(decide(&undone), Action::Restart { token: Some(_), .. }), "its child was created later");
    // A child that was created again has the token, and only its mark is missing.
    let created_again = with(json!({"spec": {"restartedAt": "1970-01-01T00:00:10Z"}}), &begun);
    assert_eq!(lost(&begun[0], &created_again), None);
    assert!(matches!(decide(&created_again), Action::Restart { token: None, .. }));
}

#[test]
fn a_restart_that_was_taken_back_is_neither_told_to_remain_nor_to_wait_for_the_end_of_a_pause() {
    let begun = |deadline: Option<i64>| {
        let late = json!({
            "spec": {"activeDeadlineSeconds": deadline}, "status": {"startTime": "1970-01-01T00:00:11Z"},
        });
        with(json!({}), &[restart("a", 10, late)])
    };
    let expired = decide(&begun(Some(60)));
    assert_eq!(told(expired.clone(), "a"), outcome("False", "DeadlineExceeded"));
    assert!(message(expired.clone()).contains("does not show it any more"), "{}", message(expired));
    let mut paused = begun(None);
    spec(&mut paused).paused = true;
    paused.prepared.as_mut().unwrap().is_taken_back = true;
    assert_eq!(told(decide(&paused), "a"), outcome("False", "Superseded"));
    paused.prepared.as_mut().unwrap().is_taken_back = false;
    paused.desired = Err(Refusal::RevisionGone { hash: NEW.into() });
    assert!(!matches!(decide(&paused), Action::Restart { .. }), "a pause changes no child");
}

#[test]
fn a_restart_whose_child_was_exchanged_in_a_pause_succeeds_by_the_token_of_the_new_one() {
    let begun = restart("a", 10, json!({"status": {"startTime": "1970-01-01T00:00:11Z"}}));
    let mut observed = with(json!({"spec": {"restartedAt": "1970-01-01T00:00:10Z"}}), &[begun]);
    spec(&mut observed).paused = true;
    assert_eq!(told(decide(&observed), "a"), outcome("True", "Complete"));
    let waits = restart("a", 10, json!({}));
    observed.commands = Some(vec![waits]);
    assert_eq!(told(decide(&observed), "a"), outcome("Unknown", "Paused"), "it has not begun");
}

#[test]
fn replicas_that_serve_are_not_blamed_for_a_deadline_that_a_former_child_lets_pass() {
    let late = json!({
        "spec": {"activeDeadlineSeconds": 60}, "status": {"startTime": "1970-01-01T00:00:11Z"},
    });
    let mut observed = with(restarted("a", json!({})), &[restart("a", 10, late)]);
    observed.others = vec![child(json!({
        "metadata": {"name": "old", "uid": "old"}, "spec": {"replicas": 1}, "status": {"active": 1},
    }))];
    let said = message(decide(&observed));
    let why = "replicas of the former BasicReplicaSet \"old\" still serve";
    assert!(said.contains(why) && !said.contains("not ready"), "{said}");
    observed.others.clear();
    let Found::Ours(one) = &observed.child else { panic!() };
    let mut slow = (**one).clone();
    slow.outputs.available = 1;
    observed.child = Found::Ours(Arc::new(slow));
    assert!(message(decide(&observed)).contains("the replicas were not ready in time"));
}
