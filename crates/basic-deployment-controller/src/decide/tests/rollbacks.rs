//! Rollbacks: their targets, what they reject, and what supersedes them.

use super::{queue::*, *};
use crate::command::Order;

/// The pin of the rollback that a decision carries out.
fn pin_set(action: Action) -> Pin {
    match action {
        Action::CarryOut { patch, .. } => {
            serde_json::from_str(patch["metadata"]["annotations"][keys::PINNED_REVISION].as_str().unwrap())
                .unwrap()
        }
        action => panic!("{action:?}"),
    }
}

/// A rollback to the previous revision of two.
fn back() -> Observed {
    let mut observed = with(json!({}), &[rollback("a", 10, 0), restart("b", 20, json!({}))]);
    observed.revisions = vec![revision(1, "good"), revision(2, NEW)];
    confirm(&mut observed);
    observed
}

#[test]
fn a_rollback_pins_a_revision_and_says_what_it_rejects() {
    let observed = back();
    assert_eq!(pin_set(decide(&observed)), pin("good", NEW));
    let Action::CarryOut { command, patch } = decide(&observed) else { panic!() };
    assert_eq!(command.asks.as_ref().unwrap().order, Order::Rollback(0));
    assert!(patch["metadata"]["annotations"][keys::COMMANDS].as_str().unwrap().contains("\"a\""));
    assert!(patch.get("spec").is_none());
}

#[test]
fn a_rollback_to_what_spec_and_template_give_rejects_nothing() {
    let mut observed = pinned(with(json!({"metadata": {"annotations": {keys::HASH: "good"}}}), &[]), "good");
    observed.revisions = vec![revision(2, NEW), revision(3, "good")];
    observed.commands = Some(vec![rollback("a", 10, 0)]);
    confirm(&mut observed);
    let set = pin_set(decide(&observed));
    assert_eq!(set, pin(NEW, NEW));
    observed.pin = Some(set);
    assert_eq!(Conditions::find(&status(&observed).conditions, "RolledBack"), None);
}

#[test]
fn while_the_template_renders_nothing_what_was_rendered_last_is_rejected() {
    let broken = || Refusal::RevisionGone { hash: NEW.into() };
    let mut observed = back();
    (observed.rendered, observed.desired) = (Err(broken()), Err(broken()));
    assert_eq!(pin_set(decide(&observed)), pin("good", NEW));
    let mut held = pinned(observed, "good");
    held.pin = Some(pin("good", "rejected before"));
    held.revisions = vec![revision(1, "older"), revision(2, NEW), revision(3, "good")];
    held.commands = Some(vec![rollback("a", 10, 1)]);
    confirm(&mut held);
    assert_eq!(pin_set(decide(&held)), pin("older", "rejected before"));
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

/// The observation after the rollback was carried out, before the child follows.
fn rolled_back() -> Observed {
    let mut observed = pinned(back(), "good");
    observed.revisions = vec![revision(2, NEW), revision(3, "good")];
    let commands = observed.commands.clone().unwrap();
    carry_out(&mut observed, &commands[0]);
    observed
}

#[test]
fn the_child_follows_a_pin_and_the_rollback_succeeds_when_it_serves() {
    let mut observed = rolled_back();
    let Action::Apply { desired, cause: Cause::Rendering, .. } = decide(&observed) else { panic!() };
    assert_eq!(desired.hash, "good");
    let tells = |observed: &Observed| commands::tell(observed, &CommandQueue::of(observed)).unwrap();
    assert_eq!(told(tells(&observed), "a"), outcome("Unknown", "Running"), "it serves the rejected one");
    assert_eq!(told(tells(&observed), "b"), outcome("Unknown", "Queued"));
    observed.child = Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "good"}}})));
    assert_eq!(told(decide(&observed), "a"), outcome("True", "Complete"));
    assert!(Conditions::is_true(&status(&observed).conditions, "RolledBack"));
}

#[test]
fn a_rollback_to_a_name_that_somebody_else_has_fails_and_stalls_the_deployment() {
    for holder in [Found::Orphan, Found::Foreign] {
        let mut observed = rolled_back();
        observed.child = holder(child(json!({})));
        let refused = decide(&observed);
        assert!(matches!(refused, Action::Refuse(_)), "{refused:?}");
        observed.attempt = former::without(&refused, "ChildNotOwned", "it is somebody else's");
        assert_eq!(told(decide(&observed), "a"), outcome("False", "ChildNotOwned"));
        assert_eq!(ready(&status(&observed)), (false, "ChildNotOwned".into()));
    }
}

#[test]
fn a_rollback_waits_for_no_child_that_is_leaving() {
    let leaving = child(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let former = child(json!({"metadata": {"name": "old", "uid": "old"}, "spec": {"replicas": 3}}));
    for wanted in [Found::Ours(leaving), Found::Leaving(child(json!({})))] {
        let mut observed = back();
        (observed.child, observed.others) = (wanted, vec![former.clone()]);
        confirm(&mut observed);
        assert_eq!(pin_set(decide(&observed)).hash, "good");
    }
}

#[test]
fn a_rollback_is_superseded_when_spec_or_template_move_on() {
    let mut moved = rolled_back();
    (moved.pin, moved.desired) = (None, Ok(desired()));
    moved.revisions.push(revision(4, NEW));
    moved.revisions.remove(0);
    assert_eq!(told(decide(&moved), "a"), outcome("False", "Superseded"));
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
    spent.attempt = former::without(&Action::Unpin, "Forbidden", "no");
    assert!(matches!(decide(&spent), Action::WriteStatus(_)), "it holds up nothing else");
    assert!(!matches!(decide(&annotated(rolled_back())), Action::Unpin));
}

#[test]
fn a_rollback_comes_before_the_rendering_that_the_server_does_not_take() {
    let mut observed = back();
    observed.child = Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "good"}}})));
    observed.attempt = former::without(
        &decide(&with(json!({"metadata": {"annotations": {keys::HASH: "good"}}}), &[])),
        "Invalid",
        "no",
    );
    assert_eq!(pin_set(decide(&observed)).hash, "good");
}
