//! A step that fails holds up only itself.

use super::{
    exchange::{deployment_child, switched, unlisted},
    former::without,
    *,
};

/// The same after its next action failed.
fn after_failure(mut observed: Observed) -> Observed {
    observed.backoffs = without(&decide(&observed), "Forbidden", "no");
    observed
}

#[test]
fn a_rendering_that_the_server_refuses_holds_up_no_scaling() {
    let behind = json!({"metadata": {"annotations": {keys::HASH: "old"}}, "spec": {"replicas": 1}});
    let observed = ours(behind);
    assert!(matches!(decide(&observed), Action::Apply { .. }));
    let observed = after_failure(observed);
    assert!(matches!(decide(&observed), Action::Scale { replicas: 3, is_former: false, .. }));
    let told = status(&observed);
    assert_eq!(ready(&told), (false, "Forbidden".into()));
    assert!(Conditions::is_true(&told.conditions, Conditions::STALLED));
}

#[test]
fn replicas_that_the_server_refuses_hold_up_no_rendering() {
    let mut observed = after_failure(ours(json!({"spec": {"replicas": 1}})));
    assert!(!matches!(decide(&observed), Action::Scale { is_former: false, .. }));
    assert_eq!(ready(&status(&observed)), (false, "Forbidden".into()));
    observed.child = Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "old"}}})));
    assert!(matches!(decide(&observed), Action::Apply { .. }));
}

#[test]
fn a_child_that_cannot_be_created_leaves_the_former_one_in_service() {
    let mut observed = after_failure(switched());
    assert!(!matches!(decide(&observed), Action::Create { .. }), "it is tried again and again");
    observed.others = vec![deployment_child(json!({"spec": {"replicas": 0}, "status": {"active": 0}}))];
    assert!(matches!(decide(&observed), Action::Scale { replicas: 3, is_former: true, .. }));
}

#[test]
fn no_child_is_created_after_a_refusal_because_of_one_that_is_not_seen() {
    let mut observed = switched();
    observed.others.clear();
    let observed = unlisted(observed);
    assert!(matches!(decide(&observed), Action::Refuse(_)));
    let next = decide(&after_failure(observed));
    assert!(!matches!(next, Action::Refuse(_) | Action::Create { .. }), "{next:?}");
}

#[test]
fn a_former_child_that_cannot_be_deleted_is_told() {
    let mut observed = switched();
    observed.child = Found::Ours(child(json!({})));
    assert!(matches!(decide(&observed), Action::Delete(_)));
    let observed = after_failure(observed);
    assert!(!matches!(decide(&observed), Action::Delete(_)));
    let told = status(&observed);
    assert_eq!(told.blocked_by.unwrap().reason, "Forbidden");
    let message = &Conditions::find(&told.conditions, Conditions::READY).unwrap().message;
    assert!(message.ends_with("; a former child cannot be deleted: no"), "{message}");
    let mut gone = observed;
    gone.others.clear();
    let message = &Conditions::find(&status(&gone).conditions, Conditions::READY).unwrap().message.clone();
    assert_eq!(message, "3 of 3 replicas are serving");
}

#[test]
fn revisions_that_cannot_be_deleted_hold_up_nothing() {
    let mut observed = ours(json!({}));
    observed.revisions = (0..30).map(|number| revision(number, &format!("r{number}"))).collect();
    observed.revisions.push(revision(30, NEW));
    assert!(matches!(decide(&observed), Action::Prune(_)));
    let observed = after_failure(observed);
    assert!(!matches!(decide(&observed), Action::Prune(_)));
    assert!(status(&observed).ready);
}

#[test]
fn a_pin_takes_back_an_orphan_of_its_revision_and_no_other_one() {
    let mut observed = pinned(ours(json!({})), "good");
    observed.revisions = vec![revision(1, NEW), revision(2, "good")];
    let orphan = |hash: &str| {
        let metadata = json!({"uid": "orphan", "ownerReferences": null, "annotations": {keys::HASH: hash}});
        Found::Orphan(child(json!({"metadata": metadata})))
    };
    let mut to = |found: Found| {
        observed.child = found;
        decide(&observed)
    };
    let Action::Apply { child, .. } = to(orphan("good")) else { panic!() };
    assert_eq!(child.uid, "orphan");
    let Action::Refuse(refusal) = to(orphan("other")) else { panic!() };
    assert!(refusal.to_string().contains("restore those to have it adopted"), "{refusal}");
}

#[test]
fn a_breach_that_is_over_holds_up_nothing_and_another_failure_hides_none() {
    let broken =
        || ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}, "status": {"active": "3"}}));
    let mut observed = after_failure(broken());
    observed.child = Found::Nothing;
    assert_eq!(decide(&observed), create(desired()));
    observed.child = Found::Ours(child(json!({"metadata": {"annotations": {keys::HASH: "old"}}})));
    assert!(matches!(decide(&observed), Action::Apply { .. }));

    let mut observed = after_failure(ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}})));
    observed.child = broken().child;
    let refused = decide(&observed);
    assert!(matches!(&refused, Action::Refuse(why) if why.reason == "ContractBroken"), "{refused:?}");
}

#[test]
fn an_owner_reference_in_another_version_is_refreshed_also_during_a_deletion_and_holds_up_nothing() {
    let mut reference = fixtures::owner("deployment");
    reference["apiVersion"] = "catena.dev/v1alpha0".into();
    let old = child(json!({"metadata": {"ownerReferences": [reference]}}));
    let stored = Arc::new(Revision { owner: old.owner.clone(), ..Revision::clone(&revision(1, NEW)) });
    let mut observed = observed(Found::Ours(old.clone()));
    observed.revisions = vec![stored.clone()];
    let refresh = Action::RefreshOwner { children: vec![old], revisions: vec![stored] };
    assert_eq!(decide(&observed), refresh);
    assert_ne!(decide(&after_failure(observed.clone())), refresh);
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now);
    Arc::make_mut(&mut observed.deployment).metadata.deletion_timestamp = Some(now);
    assert_eq!(decide(&observed), refresh);
}
