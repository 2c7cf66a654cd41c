//! A restart is carried out once: replicas that are newer need no second replacement.

use catena_api::command::SUCCEEDED;

use super::{
    queue::{carry_out, confirm, outcome, restart, restarted, running, told, with},
    *,
};

/// The token that a decision sets on the deployment, if it carries out a restart.
fn token_set(action: Action) -> Option<String> {
    match action {
        Action::CarryOut { patch, .. } => patch["spec"]["restartedAt"].as_str().map(str::to_owned),
        action => panic!("{action:?}"),
    }
}

fn message(action: Action) -> String {
    let Action::Tell(news) = action else { panic!("{action:?}") };
    Conditions::find(&news[0].1.conditions, SUCCEEDED).unwrap().message.clone()
}

/// The same deployment with this restart token.
fn under(token: &str, mut observed: Observed) -> Observed {
    spec(&mut observed).restarted_at = Some(token.into());
    observed.desired = Ok(Desired::new(&observed.deployment, rendered(NEW), replica_sets()));
    confirm(&mut observed);
    observed
}

#[test]
fn a_token_is_handed_to_the_child_whoever_has_set_it_and_no_revision_comes_of_it() {
    let token = "2026-01-01T00:00:00Z";
    let Action::Create { desired: made, .. } = decide(&under(token, observed(Found::Nothing))) else {
        panic!()
    };
    assert_eq!((made.token.as_deref(), &made.object), (Some(token), &desired().object));
    assert_eq!(made.body(3, None)["spec"]["restartedAt"], token);

    let old = child(json!({"spec": {"restartedAt": "2025-01-01T00:00:00Z"}}));
    for present in [child(json!({})), old] {
        let waiting = under(token, observed(Found::Ours(present.clone())));
        assert!(!waiting.is_ready(), "older replicas are counted");
        assert_eq!(status(&waiting).updated, None);
        assert_eq!(decide(&waiting), Action::Restart { child: present, token: token.into() });
    }
    let handed = under(token, ours(json!({"spec": {"restartedAt": token}, "status": {"updated": 3}})));
    assert_eq!(written(decide(&handed)).updated, Some(3));
    let changed = under(token, ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}})));
    let Action::Apply { desired, child, .. } = decide(&changed) else { panic!() };
    assert_eq!(desired.body(3, Some(&child))["spec"]["restartedAt"], token, "both in one write");
}

#[test]
fn a_token_that_the_deployment_has_lost_stays_on_the_child() {
    let given = json!({"spec": {"restartedAt": "2026-01-01T00:00:00Z"}});
    assert!(matches!(decide(&ours(given.clone())), Action::WriteStatus(_)));
    let mut outdated = given;
    merge(&mut outdated, json!({"metadata": {"annotations": {keys::HASH: "old"}}}));
    let Action::Apply { desired, child, .. } = decide(&ours(outdated)) else { panic!() };
    let body = desired.body(3, Some(&child));
    assert_eq!(body["spec"]["restartedAt"], "2026-01-01T00:00:00Z");
    assert_eq!(body["metadata"]["resourceVersion"], "5", "an older state would take the restart back");
}

#[test]
fn in_a_pause_no_token_is_handed_on() {
    let mut paused = under("2026-01-01T00:00:00Z", ours(json!({})));
    spec(&mut paused).paused = true;
    assert_eq!(ready(&written(decide(&paused))), (false, "Paused".into()));
}

#[test]
fn a_kind_without_restarts_stays_ready_and_says_that_the_token_has_no_effect() {
    let observed = under("1970-01-01T00:00:30Z", ours(json!({})));
    let status = written(decide(&with_contract(observed, |contract| contract.restarted_at = None)));
    let blocked = Conditions::find(&status.conditions, "RestartBlocked").unwrap();
    assert_eq!((&*blocked.status, &*blocked.reason), ("True", "ChildHasNoRestart"));
    assert!(status.ready && blocked.message.starts_with("spec.restartedAt is 1970-"), "{blocked:?}");
}

#[test]
fn a_token_is_only_ever_raised_and_a_restart_that_would_change_none_fails() {
    let waiting = |token: Option<&str>| {
        let mut waiting = with(json!({"spec": {"restartedAt": token}}), &[restart("a", 10, json!({}))]);
        spec(&mut waiting).restarted_at = token.map(str::to_owned);
        confirm(&mut waiting);
        waiting
    };
    for lower in [None, Some("1970-01-01T00:00:05Z")] {
        assert_eq!(token_set(decide(&waiting(lower))).as_deref(), Some("1970-01-01T00:00:10Z"), "{lower:?}");
    }
    for (token, reason) in [
        // Nobody knows when it was set, so that replicas with it may be older than the restart.
        ("1970-01-01T00:00:10Z", "Superseded"),
        ("1970-01-01T00:00:30Z", "Superseded"),
        ("9999-12-31T23:59:59Z", "TokenInFuture"),
    ] {
        assert_eq!(told(decide(&waiting(Some(token))), "a"), outcome("False", reason), "{token}");
    }
    let mut lost = waiting(Some("1970-01-01T00:00:30Z"));
    spec(&mut lost).restarted_at = None;
    assert_eq!(told(decide(&lost), "a"), outcome("False", "Superseded"), "the child has kept it");
    let mut removed = waiting(Some("9999-12-31T23:59:59Z"));
    spec(&mut removed).restarted_at = None;
    confirm(&mut removed);
    assert!(token_set(decide(&removed)).is_some(), "the next token replaces it");
    let mut served = waiting(Some("1970-01-01T00:00:30Z"));
    served.recent = served.recent.with(restart("b", 30, json!({})).recent());
    confirm(&mut served);
    assert_eq!(token_set(decide(&served)), None, "another restart has set it");
}

#[test]
fn a_token_in_the_future_is_told_until_its_time_has_come() {
    let far = under("9999-12-31T23:59:59Z", ours(json!({"spec": {"restartedAt": "9999-12-31T23:59:59Z"}})));
    let status = written(decide(&far));
    let blocked = Conditions::find(&status.conditions, "RestartBlocked").unwrap();
    assert_eq!((&*blocked.reason, status.ready), ("TokenInFuture", true));
    let mut told = far;
    Arc::make_mut(&mut told.deployment).status = Some(status);
    assert_eq!(decide(&told), Action::Wait(Duration::from_secs(3600)));
    let soon = (told.now + Duration::from_secs(7)).to_string();
    let child = Found::Ours(child(json!({"spec": {"restartedAt": soon}})));
    let mut near = under(&soon, Observed { child, ..told });
    let status = written(decide(&near));
    Arc::make_mut(&mut near.deployment).status = Some(status);
    assert_eq!(decide(&near), Action::Wait(Duration::from_secs(7)));
}

#[test]
fn a_token_of_a_server_whose_clock_is_ahead_is_believed() {
    let commands = [restart("a", 2_000_000, json!({})), restart("b", 2_000_001, json!({}))];
    let mut observed = with(json!({"spec": {"restartedAt": commands[1].token()}}), &commands);
    carry_out(&mut observed, &commands[1]);
    assert_eq!(Conditions::find(&status(&observed).conditions, "RestartBlocked"), None);
    observed.commands = Some(vec![commands[0].clone()]);
    confirm(&mut observed);
    assert_eq!(token_set(decide(&observed)), None);
}

#[test]
fn a_finished_restart_whose_status_is_wiped_succeeds_again_without_replacing_anything() {
    let commands = [restart("a", 10, json!({})), restart("b", 20, json!({}))];
    let mut wiped = running(restarted(json!({"spec": {"restartedAt": "1970-01-01T00:00:20Z"}})), &commands);
    carry_out(&mut wiped, &commands[1]);
    let action = decide(&wiped);
    for uid in ["a", "b"] {
        assert_eq!(told(action.clone(), uid), outcome("True", "Complete"));
    }
}

#[test]
fn a_restart_that_had_begun_and_whose_proof_is_gone_is_judged_and_not_repeated() {
    let begun = restart("a", 10, json!({"status": {"startTime": "1970-01-01T00:00:11Z"}}));
    let replaced = with(restarted(json!({})), std::slice::from_ref(&begun));
    assert_eq!(told(decide(&replaced), "a"), outcome("True", "Complete"), "the child has kept its token");
    let lost = with(json!({}), &[begun]);
    assert_eq!(told(decide(&lost), "a"), outcome("False", "Superseded"));
}

#[test]
fn a_restart_that_may_have_been_forgotten_is_not_carried_out() {
    let mut observed = with(json!({}), &[restart("late", 5, json!({}))]);
    for second in 10..18 {
        observed.recent = observed.recent.with(restart("x", second, json!({})).recent());
    }
    confirm(&mut observed);
    assert_eq!(told(decide(&observed), "late"), outcome("False", "Superseded"));
}

#[test]
fn restarts_of_one_second_replace_the_replicas_once() {
    let commands = [restart("a", 10, json!({})), restart("b", 10, json!({}))];
    let mut observed = running(restarted(json!({})), &commands);
    observed.commands = Some(vec![commands[1].clone()]);
    confirm(&mut observed);
    assert_eq!(token_set(decide(&observed)), None);
    carry_out(&mut observed, &commands[1]);
    assert_eq!(message(decide(&observed)), "all replicas are new and serving");
}

#[test]
fn a_token_that_somebody_takes_back_from_the_child_is_set_again() {
    // `kubectl rollout undo` takes it back together with the template.
    let undone = running(json!({}), &[restart("a", 10, json!({}))]);
    assert!(matches!(decide(&undone), Action::Restart { .. }));
}

#[test]
fn a_child_that_took_over_and_is_new_enough_serves_the_restart() {
    let mut observed = running(restarted(json!({})), &[restart("a", 10, json!({}))]);
    let former = |active: i32| {
        child(json!({
            "metadata": {"name": "old", "uid": "old"},
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
fn replicas_that_serve_are_not_blamed_for_a_deadline_that_a_former_child_lets_pass() {
    let late = json!({
        "spec": {"activeDeadlineSeconds": 60}, "status": {"startTime": "1970-01-01T00:00:11Z"},
    });
    let mut observed = running(restarted(json!({})), &[restart("a", 10, late)]);
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
