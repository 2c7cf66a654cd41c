//! A child of an earlier name is scaled and told until the new one serves.

use operator_kit::run::Backoffs;

use super::*;

#[test]
fn a_child_of_an_earlier_name_goes_when_the_new_one_serves() {
    let other = child(json!({"metadata": {"name": "old-name", "uid": "other"}}));
    let mut starting = ours(json!({"spec": {"replicas": 1}, "status": {"active": 0}}));
    starting.others = vec![other.clone()];
    assert!(matches!(decide(&starting), Action::WriteStatus(_)));
    let mut serving = ours(json!({}));
    serving.others = vec![other.clone()];
    assert_eq!(decide(&serving), Action::Delete(vec![other]));
}

#[test]
fn a_child_of_an_earlier_name_counts_and_is_scaled_until_the_new_one_serves() {
    let other = |replicas: i32| {
        child(json!({
            "metadata": {"name": "old-name", "uid": "other"},
            "spec": {"replicas": replicas}, "status": {"active": 3, "selector": "old=1"},
        }))
    };
    let mut starting = ours(json!({"spec": {"replicas": 1}, "status": {"active": 0}}));
    starting.others = vec![other(3)];
    let status = written(decide(&starting));
    assert_eq!((status.active, status.ready, status.selector.as_deref()), (3, false, Some("old=1")));
    let message = &Conditions::find(&status.conditions, Conditions::READY).unwrap().message;
    assert_eq!(message, "3 of 3 replicas are serving, 3 of them of the former BasicReplicaSet \"old-name\"");

    let unscaled = other(2);
    for child in [Found::Nothing, Found::Foreign(child(json!({})))] {
        starting.child = child;
        starting.others = vec![unscaled.clone()];
        assert_eq!(
            decide(&starting),
            Action::Scale { child: unscaled.clone(), replicas: 3, heals: false, is_former: true }
        );
    }
    spec(&mut starting).paused = true;
    assert_eq!(
        decide(&starting),
        Action::Scale { child: unscaled.clone(), replicas: 3, heals: false, is_former: true }
    );
    starting.others = vec![child(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))];
    assert!(!matches!(decide(&starting), Action::Scale { is_former: true, .. }));
}

#[test]
fn a_child_of_an_earlier_name_that_somebody_scales_is_put_back() {
    let mut observed = ours(json!({"spec": {"replicas": 0}, "status": {"active": 0}}));
    observed.others =
        vec![child(json!({"metadata": {"name": "old-name", "uid": "other"}, "spec": {"replicas": 9}}))];
    observed.given_replicas.insert("other".into(), 3);
    for current in [observed.child.clone(), Found::Nothing] {
        observed.child = current;
        spec(&mut observed).paused = true;
        assert!(matches!(decide(&observed), Action::Scale { heals: true, replicas: 3, is_former: true, .. }));
    }
}

/// An attempt after an action has failed.
pub fn without(failed: &Action, reason: &'static str, message: &str) -> Backoffs {
    let failure = Failure::stalled(reason, message);
    Backoffs::default().and_step(failed.step(), failure)
}

#[test]
fn a_child_of_an_earlier_name_that_cannot_be_scaled_holds_up_nothing_else() {
    let mut observed = ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}}));
    let former = child(json!({"metadata": {"name": "old-name", "uid": "other"}, "spec": {"replicas": 2}}));
    observed.others = vec![former.clone()];
    let tried = decide(&observed);
    assert!(matches!(tried, Action::Scale { is_former: true, .. }));
    observed.backoffs = without(&tried, "Forbidden", "no");
    let next = decide(&observed);
    assert!(matches!(next, Action::Apply { .. }));
    assert_ne!(next.step(), tried.step());

    observed.child = Found::Ours(child(json!({"spec": {"replicas": 2}, "status": {"active": 1}})));
    let status = written(decide(&observed));
    assert_eq!(ready(&status), (false, "Exchanging".into()));
    let message = &Conditions::find(&status.conditions, Conditions::READY).unwrap().message;
    assert!(message.ends_with("; a former child cannot be scaled: no"), "{message}");
    let blocker = status.blocked_by.unwrap();
    assert_eq!((&*blocker.kind, &*blocker.name, &*blocker.reason), ("BasicDeployment", "web", "Forbidden"));
    observed.child = Found::Ours(child(json!({})));
    let status = crate::status::status(&observed);
    assert_eq!((ready(&status), status.blocked_by), ((false, "Exchanging".into()), None), "it goes now");
    assert_eq!(decide(&observed), Action::Delete(vec![former]));
}
