//! The restart token, and its way to the child.

use super::*;

/// The same deployment with this restart token.
fn under(token: &str, mut observed: Observed) -> Observed {
    spec(&mut observed).restarted_at = Some(token.into());
    observed.desired = Ok(Desired::new(&observed.deployment, rendered(NEW), replica_sets()));
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
fn an_orphan_that_is_adopted_in_a_pause_keeps_its_token() {
    let orphan =
        json!({"metadata": {"ownerReferences": null}, "spec": {"restartedAt": "1970-01-01T00:00:10Z"}});
    let mut paused = observed(Found::Orphan(child(orphan)));
    spec(&mut paused).paused = true;
    let paused = under("1970-01-01T00:00:20Z", paused);
    let Action::Apply { desired, child, .. } = decide(&paused) else { panic!() };
    assert_eq!(desired.body(3, Some(&child))["spec"]["restartedAt"], "1970-01-01T00:00:10Z");
}

#[test]
fn a_later_token_of_a_child_stays_beside_a_deployment_that_was_restored_and_one_of_the_future_does_not() {
    let own = "1970-01-01T00:00:10Z";
    let body = |observed: &Observed| {
        let Action::Apply { desired, child, .. } = decide(observed) else { panic!() };
        desired.body(3, Some(&child))["spec"]["restartedAt"].clone()
    };
    let orphan = |token: &str| {
        let child = child(json!({"metadata": {"ownerReferences": null}, "spec": {"restartedAt": token}}));
        under(own, observed(Found::Orphan(child)))
    };
    let later = under(own, ours(json!({"spec": {"restartedAt": "1970-01-01T00:00:20Z"}})));
    assert!(written(decide(&later)).ready, "nothing is older than the restart");
    assert_eq!(body(&orphan("1970-01-01T00:00:20Z")), "1970-01-01T00:00:20Z");
    for token in ["1970-01-01T00:00:09Z", "2099-01-01T00:00:00Z", "by hand"] {
        let taken_back = decide(&under(own, ours(json!({"spec": {"restartedAt": token}}))));
        assert!(matches!(taken_back, Action::Restart { token, .. } if token == own), "{token}");
        assert_eq!(body(&orphan(token)), own);
    }
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
fn a_token_in_the_future_is_told_until_its_time_has_come() {
    let far = under("9999-12-31T23:59:59Z", ours(json!({"spec": {"restartedAt": "9999-12-31T23:59:59Z"}})));
    let status = written(decide(&far));
    let blocked = Conditions::find(&status.conditions, "RestartBlocked").unwrap();
    assert_eq!((&*blocked.reason, status.ready), ("TokenInFuture", true));
    // It was handed on at once.
    assert!(blocked.message.contains("no restart before that time has an effect"), "{blocked:?}");
    let mut told = far;
    Arc::make_mut(&mut told.deployment).status = Some(status);
    assert_eq!(decide(&told), Action::Wait(Duration::from_secs(3600)));
    let soon = (told.now + Duration::from_secs(67)).to_string();
    let child = Found::Ours(child(json!({"spec": {"restartedAt": soon}})));
    let mut near = under(&soon, Observed { child, ..told });
    let status = written(decide(&near));
    Arc::make_mut(&mut near.deployment).status = Some(status);
    assert_eq!(decide(&near), Action::Wait(Duration::from_secs(67)));
}

#[test]
fn a_token_of_a_server_whose_clock_is_ahead_is_believed() {
    let ahead = (ours(json!({})).now + Duration::from_secs(50)).to_string();
    let observed = under(&ahead, ours(json!({"spec": {"restartedAt": ahead}})));
    assert_eq!(Conditions::find(&status(&observed).conditions, "RestartBlocked"), None);
}

#[test]
fn a_token_that_somebody_takes_back_from_the_child_is_set_again() {
    // `kubectl rollout undo` takes it back together with the template.
    let undone = under("2026-01-01T00:00:00Z", ours(json!({})));
    assert!(matches!(decide(&undone), Action::Restart { .. }));
}
