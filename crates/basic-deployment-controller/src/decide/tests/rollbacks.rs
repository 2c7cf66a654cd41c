//! Rollbacks: their targets, what they reject, and what supersedes them.

use super::{queue::*, *};

#[test]
fn a_rollback_puts_the_child_on_a_revision_and_says_what_it_rejects() {
    let mut observed = with(json!({}), &[rollback("a", 10, 0)]);
    observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
    prepare(&mut observed);
    let Action::Apply { desired, cause: Cause::Rollback, .. } = decide(&observed) else { panic!() };
    assert_eq!(desired.hash, "good");
    let annotations = &desired.object["metadata"]["annotations"];
    assert_eq!(annotations[keys::HASH], "good");
    assert_eq!(annotations[keys::REJECTED_HASH], NEW);
    assert_eq!(annotations[keys::LAST_COMMAND], "a");
    assert_eq!(annotations[keys::ROLLED_BACK_BY], "a");
}

#[test]
fn a_rollback_to_what_spec_and_template_give_rejects_nothing() {
    let mut observed = with(json!({"metadata": {"annotations": {keys::HASH: "good"}}}), &[]);
    observed.revisions = vec![revision(2, NEW), revision(3, "good")];
    observed.desired = Ok(Desired::new(&deployment(), rendered("good"), replica_sets()));
    let rejects = Rejects { hash: Some(NEW.into()), command: Some("before".into()) };
    let held = observed.revisions[1].clone();
    observed.revisions[1] = Arc::new(Revision { rejects: rejects.clone(), ..(*held).clone() });
    observed.pin = Some(Pin { hash: "good".into(), revision: Some(observed.revisions[1].clone()), rejects });
    observed.commands = Some(vec![rollback("a", 10, 0)]);
    prepare(&mut observed);
    let Action::Apply { desired, .. } = decide(&observed) else { panic!() };
    assert_eq!(desired.hash, NEW);
    assert!(desired.object["metadata"]["annotations"][keys::REJECTED_HASH].is_null());
}

#[test]
fn a_revision_that_is_not_there_fails_the_rollback_and_not_the_next_command() {
    let observed = with(json!({}), &[rollback("a", 10, 9)]);
    assert_eq!(told(decide(&observed), "a"), outcome("False", "RevisionNotFound"));
    assert_eq!(
        told(decide(&with(json!({}), &[rollback("a", 10, 0)])), "a"),
        outcome("False", "RevisionNotFound")
    );
}

#[test]
fn a_rollback_to_a_name_that_somebody_else_has_fails_and_creates_nothing() {
    let holders = [Found::Orphan, Found::Leaving, Found::Foreign];
    for holder in holders {
        let mut observed = with(json!({}), &[rollback("a", 10, 0), restart("b", 20, json!({}))]);
        observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
        prepare(&mut observed);
        let (_, found) = observed.prepared.as_mut().unwrap().target.as_mut().unwrap();
        *found = holder(child(json!({})));
        assert_eq!(told(decide(&observed), "a"), outcome("False", "ChildNotOwned"));
        assert_eq!(told(decide(&observed), "b"), outcome("Unknown", "Queued"));
    }
}

#[test]
fn a_rollback_to_a_former_child_does_not_wait_for_the_end_of_the_wanted_one() {
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let of_former = |changes: Value| {
        let mut object =
            json!({"metadata": {"name": "good", "uid": "former", "annotations": {keys::HASH: "good"}}});
        merge(&mut object, changes);
        child(object)
    };
    let mut observed = with(leaving.clone(), &[rollback("a", 10, 1)]);
    observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
    observed.others = vec![of_former(json!({}))];
    prepare(&mut observed);
    let target = |observed: &mut Observed, to: Arc<Child>| {
        let (_, found) = observed.prepared.as_mut().unwrap().target.as_mut().unwrap();
        *found = Found::Ours(to);
    };
    for wanted in [Found::Ours(child(leaving.clone())), Found::Leaving(child(json!({})))] {
        observed.child = wanted;
        target(&mut observed, of_former(json!({})));
        let keep = |observed: &Observed| {
            crate::decide::child::keep(
                observed.desired.as_ref().unwrap(),
                observed,
                &CommandQueue::of(observed),
            )
        };
        assert!(matches!(keep(&observed), Some(Action::Apply { child, .. }) if child.uid == "former"));
        target(&mut observed, of_former(leaving.clone()));
        let Some(Action::Tell(news)) = commands::tell(&observed, &CommandQueue::of(&observed)) else {
            panic!()
        };
        let succeeded = conditions::find(&news[0].1.conditions, "Succeeded").unwrap();
        assert_eq!((&*succeeded.status, &*succeeded.reason), ("Unknown", "ChildLeaving"));
        assert_eq!(keep(&observed), None);
    }
}

#[test]
fn a_rollback_is_superseded_when_spec_or_template_move_on() {
    let marks = json!({keys::LAST_COMMAND: "a"});
    let moved =
        with(json!({"metadata": {"annotations": marks}, "status": {"active": 1}}), &[rollback("a", 10, 0)]);
    assert_eq!(told(decide(&moved), "a"), outcome("False", "Superseded"));
}

#[test]
fn a_rollback_comes_before_the_rendering_that_the_server_does_not_take() {
    let mut observed =
        with(json!({"metadata": {"annotations": {keys::HASH: "good"}}}), &[rollback("a", 10, 0)]);
    observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
    prepare(&mut observed);
    let Action::Apply { desired, .. } = decide(&observed) else { panic!() };
    assert_eq!(desired.hash, "good");
}

#[test]
fn a_rollback_to_another_child_waits_while_the_template_cannot_be_rendered() {
    let mut observed = with(json!({}), &[rollback("a", 10, 1)]);
    observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
    prepare(&mut observed);
    observed.desired = Err(Refusal::RevisionGone { hash: NEW.into() });
    assert!(
        matches!(decide(&observed), Action::Apply { child, .. } if child.uid == "child"),
        "the same child"
    );
    let target = |observed: &mut Observed, found: Found| {
        observed.prepared.as_mut().unwrap().target.as_mut().unwrap().1 = found;
    };
    let other = child(json!({"metadata": {"name": "good", "uid": "other"}}));
    for found in [Found::Nothing, Found::Ours(other)] {
        target(&mut observed, found);
        assert_eq!(told(decide(&observed), "a"), outcome("Unknown", "NoExchange"));
    }
}
