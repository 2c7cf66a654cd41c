//! The pin that holds a `BasicDeployment` on an older revision.

use super::*;

/// A `BasicDeployment` that is held on an older revision, before its child follows.
fn rolled_back() -> Observed {
    let mut observed = pinned(ours(json!({})), "good");
    observed.revisions = vec![revision(2, NEW), revision(3, "good")];
    observed
}

#[test]
fn a_pin_that_rejects_nothing_holds_and_is_no_rollback() {
    let observed = pinned(ours(json!({})), NEW);
    assert_eq!(Conditions::find(&status(&observed).conditions, "RolledBack"), None);
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn the_child_follows_a_pin_and_is_ready_when_it_serves() {
    let mut observed = rolled_back();
    let Action::Apply { desired, heals: false, .. } = decide(&observed) else { panic!() };
    assert_eq!(desired.hash, "good");
    assert!(!status(&observed).ready, "it serves the rejected one");
    observed.child = Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "good"}}})));
    let served = status(&observed);
    assert_eq!((served.ready, &*served.child.unwrap().hash), (true, "good"));
    assert!(Conditions::is_true(&served.conditions, "RolledBack"));
}

#[test]
fn a_spec_or_a_template_that_renders_nothing_is_told_while_a_rollback_holds() {
    let mut observed = rolled_back();
    observed.child = Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "good"}}})));
    observed.rendered = Err(Failure::stalled("TemplateNotFound", "there is no template \"lost\""));
    let told = status(&observed);
    let held = Conditions::find(&told.conditions, "RolledBack").unwrap();
    assert!(told.ready && held.message.contains("\"lost\""), "{held:?}");
}

#[test]
fn a_pin_to_a_name_that_somebody_else_has_stalls_the_deployment() {
    for holder in [Found::Orphan, Found::Foreign] {
        let mut observed = rolled_back();
        observed.child = holder(child(json!({})));
        let refused = decide(&observed);
        assert!(matches!(refused, Action::Refuse(_)), "{refused:?}");
        observed.backoffs = former::without(&refused, "ChildNotOwned", "it is somebody else's");
        let status = status(&observed);
        assert_eq!(ready(&status), (false, "ChildNotOwned".into()));
        assert!(Conditions::is_true(&status.conditions, "RolledBack"), "its cause is told beside it");
    }
}

#[test]
fn a_pin_that_holds_nothing_is_removed_also_in_a_pause_and_one_that_holds_stays() {
    let annotated = |mut observed: Observed| {
        let pin = [(keys::PINNED_REVISION.to_owned(), "any".to_owned())];
        Arc::make_mut(&mut observed.deployment).metadata.annotations = Some(pin.into());
        observed
    };
    let mut spent = annotated(ours(json!({})));
    spec(&mut spent).paused = true;
    assert_eq!(decide(&spent), Action::Unpin);
    spent.backoffs = former::without(&Action::Unpin, "Forbidden", "no");
    assert!(matches!(decide(&spent), Action::WriteStatus(_)), "it holds up nothing else");
    assert!(!matches!(decide(&annotated(rolled_back())), Action::Unpin));
}
