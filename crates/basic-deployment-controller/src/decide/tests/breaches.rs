//! Children that break the replica contract, and the ways out.

use super::{
    exchange::{deployment_child, deployments, revision_of_deployments, switched},
    former::without,
    *,
};

#[test]
fn a_former_child_that_breaks_the_contract_is_told_and_not_written_to() {
    let mut observed = switched();
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}, "status": {"active": 1}})));
    observed.others = vec![deployment_child(json!({"status": {"active": "3"}}))];
    let Action::Scale { replicas: 3, is_former: false, .. } = decide(&observed) else {
        panic!("it would keep its room for ever")
    };
    observed.child = Found::Ours(child(json!({"status": {"active": 1}})));
    let refused = decide(&observed);
    let Action::RefuseFormer(refusal) = &refused else { panic!("{refused:?}") };
    assert_ne!(refused.step(), Action::Settle.step(), "it holds up everything");
    observed.backoffs = without(&refused, "ContractBroken", &refusal.message);
    let status = written(decide(&observed));
    let blocker = status.blocked_by.as_ref().unwrap();
    assert_eq!((&*blocker.name, &*blocker.reason), ("web", "ContractBroken"));
    let message = &Conditions::find(&status.conditions, Conditions::READY).unwrap().message;
    assert!(
        message.contains("the former Deployment \"web\" breaks the replica contract: contract.active"),
        "{message}"
    );
    assert!(message.ends_with("an integer"), "it is told twice: {message}");
}

#[test]
fn a_child_whose_outputs_cannot_be_read_is_neither_service_nor_room() {
    let mut observed = switched();
    let serving = observed.others[0].clone();
    let broken = child(json!({
        "metadata": {"name": "broken", "uid": "broken"}, "spec": {"replicas": 4}, "status": {"active": "4"},
    }));
    observed.others.push(broken.clone());
    assert_eq!(decide(&observed), create_with(desired(), 1), "the one that serves keeps all its replicas");
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}, "status": {"active": 0}})));
    assert!(!matches!(decide(&observed), Action::Scale { is_former: true, .. }), "{:?}", decide(&observed));

    observed.others = vec![broken];
    observed.child = Found::Nothing;
    assert_eq!(decide(&observed), create(desired()));
    observed.others = vec![serving];
    assert_eq!(decide(&observed), create_with(desired(), 1));
}

#[test]
fn a_breach_holds_up_neither_former_children_nor_its_cure() {
    let mut observed = switched();
    let broken = json!({"active": "1", "available": 1});
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}, "status": broken})));
    let refused = decide(&observed);
    observed.backoffs = without(&refused, "ContractBroken", "contract.active");
    let told = status(&observed);
    assert_eq!(ready(&told), (false, "ContractBroken".into()));
    assert!(Conditions::is_true(&told.conditions, Conditions::STALLED));
    assert_eq!(told.blocked_by.unwrap().reason, "ContractBroken");
    observed.others = vec![deployment_child(json!({"spec": {"replicas": 0}, "status": {"active": 0}}))];
    assert!(matches!(decide(&observed), Action::Scale { replicas: 3, is_former: true, .. }));
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}, "status": {"active": 1}})));
    assert_ne!(ready(&status(&observed)).1, "ContractBroken", "its cure is seen at once");
}

#[test]
fn a_pin_leads_away_from_a_child_that_breaks_the_contract_and_no_token_is_handed_to_it() {
    let mut observed = switched();
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}, "status": {"active": "1"}})));
    observed.revisions.insert(0, revision_of_deployments());
    spec(&mut observed).restarted_at = Some("2026-01-01T00:00:00Z".into());
    let refused = decide(&observed);
    assert!(matches!(refused, Action::Refuse(_)), "{refused:?}");
    observed.desired = Ok(Desired::new(&deployment(), rendered("former"), deployments()));
    observed.pin = Some(pin("former", NEW));
    observed.child = Found::Ours(observed.others.remove(0));
    assert!(!matches!(decide(&observed), Action::Refuse(_)), "{:?}", decide(&observed));
}

#[test]
fn replicas_that_somebody_removes_are_set_again() {
    let mut observed = ours(json!({"spec": {"replicas": null}}));
    assert!(matches!(decide(&observed), Action::Scale { heals: false, .. }), "they were never set");
    observed.given_replicas.insert("child".into(), 3);
    let healed = decide(&observed);
    assert!(matches!(healed, Action::Scale { replicas: 3, heals: true, is_former: false, .. }), "{healed:?}");
}

#[test]
fn a_child_that_never_reports_is_told_by_the_field_after_the_deadline() {
    let mut observed = ours(json!({"status": {"observedGeneration": null, "active": 0}}));
    Arc::make_mut(match &mut observed.child {
        Found::Ours(child) => child,
        _ => unreachable!(),
    })
    .outputs
    .observed_generation = None;
    let deadline = Duration::from_secs(600);
    (observed.since_progress, observed.behind_for) = (deadline, deadline);
    let status = written(decide(&observed));
    let message = &Conditions::find(&status.conditions, Conditions::STALLED).unwrap().message;
    assert!(message.contains("contract.observedGeneration (status.observedGeneration)"), "{message}");
}
