//! Fields of the `BasicDeployment` that its children are handed, beside what templates and others set there.

use catena_api::PodReplacementPolicy::TerminationComplete;

use super::{
    exchange::{deployment_child, switched},
    former::without,
    *,
};
use crate::{events, handed::Handed, step};

/// A child in line with a template that renders this value, or none.
fn rendering(seconds: Option<i32>) -> Observed {
    let mut observed = ours(json!({"spec": {"minReadySeconds": seconds}}));
    renders(&mut observed, NEW, seconds);
    observed
}

/// Makes a rendering with this value the desired one.
fn renders(observed: &mut Observed, hash: &str, seconds: Option<i32>) {
    let mut rendered = rendered(hash);
    if let Some(seconds) = seconds {
        rendered.object["spec"]["minReadySeconds"] = seconds.into();
    }
    observed.desired = Ok(Desired::new(&observed.deployment, rendered, replica_sets()));
}

/// The same with this value in the spec of the `BasicDeployment`.
fn set(observed: &mut Observed, seconds: Option<i32>, rendered: Option<i32>) {
    spec(observed).min_ready_seconds = seconds;
    renders(observed, NEW, rendered);
}

fn object(observed: &mut Observed) -> &mut Value {
    let Found::Ours(child) = &mut observed.child else { panic!() };
    &mut Arc::make_mut(child).object
}

fn seconds_of(observed: &mut Observed) -> Option<i64> {
    object(observed)["spec"]["minReadySeconds"].as_i64()
}

/// Takes the next step as the server does, and tells whether it heals. It has to be a write of the child.
fn take(observed: &mut Observed) -> bool {
    let action = decide(observed);
    let (patch, heals) = match action {
        Action::Scale { child, replicas, heals, .. } => {
            let mut patch = json!({"spec": {"replicas": replicas}});
            let desired = observed.desired.as_ref().unwrap();
            let handed = Handed::of(&observed.deployment.spec, &child.kind);
            handed.set_in_patch(&mut patch, &child, Some(&desired.object));
            (patch, heals)
        }
        Action::Apply { child, desired, replicas, heals } => (desired.body(replicas, Some(&child)), heals),
        action => panic!("{action:?}"),
    };
    merge(object(observed), patch);
    heals
}

fn is_at_rest(observed: &Observed) -> bool {
    matches!(decide(observed), Action::WriteStatus(_))
}

#[test]
fn a_value_that_the_server_refuses_holds_up_no_scaling() {
    let mut observed = rendering(Some(3));
    set(&mut observed, Some(700), Some(3));
    let hand = decide(&observed);
    assert_eq!(hand.step(), step::HAND);
    observed.backoffs = without(&hand, "Invalid", "must be less than the deadline");
    object(&mut observed)["spec"]["replicas"] = 1.into();
    assert!(matches!(decide(&observed), Action::Scale { replicas: 3, .. }));
    assert_eq!(ready(&status(&observed)), (false, "Invalid".into()));
}

#[test]
fn a_template_decides_until_the_deployment_does_and_again_when_it_no_longer_does() {
    let mut observed = rendering(Some(3));
    assert!(is_at_rest(&observed));
    set(&mut observed, Some(10), Some(3));
    assert!(events::of(&observed, &decide(&observed)).is_none(), "it is not scaled");
    assert!(!take(&mut observed), "it is a wish");
    assert_eq!(seconds_of(&mut observed), Some(10));
    assert!(is_at_rest(&observed), "the value of the template is not put back");
    set(&mut observed, Some(20), Some(3));
    assert!(!take(&mut observed), "it is another wish");
    assert_eq!((seconds_of(&mut observed), is_at_rest(&observed)), (Some(20), true));
    set(&mut observed, None, Some(3));
    assert!(!take(&mut observed), "nobody else has changed it");
    assert_eq!((seconds_of(&mut observed), is_at_rest(&observed)), (Some(3), true));
}

#[test]
fn a_value_that_the_deployment_has_handed_goes_with_its_field_and_one_of_somebody_else_stays() {
    let mut observed = rendering(None);
    object(&mut observed)["spec"]["minReadySeconds"] = 4.into();
    assert!(is_at_rest(&observed), "it is theirs");
    set(&mut observed, Some(5), None);
    take(&mut observed);
    assert_eq!((seconds_of(&mut observed), is_at_rest(&observed)), (Some(5), true));
    set(&mut observed, None, None);
    assert!(!take(&mut observed));
    assert_eq!((seconds_of(&mut observed), is_at_rest(&observed)), (None, true));
    object(&mut observed)["metadata"]["annotations"][keys::HANDED] = "anything".into();
    take(&mut observed);
    assert!(is_at_rest(&observed), "a forged record goes");
}

#[test]
fn a_change_of_a_handed_field_is_undone_as_any_other_also_in_a_pause() {
    let mut observed = rendering(Some(3));
    set(&mut observed, Some(10), Some(3));
    take(&mut observed);
    for is_paused in [false, true] {
        spec(&mut observed).paused = is_paused;
        object(&mut observed)["spec"]["minReadySeconds"] = 0.into();
        assert_eq!(decide(&observed).step(), step::HEAL_SCALE);
        assert!(take(&mut observed));
        assert_eq!((seconds_of(&mut observed), is_at_rest(&observed)), (Some(10), true));
    }
    set(&mut observed, Some(11), Some(3));
    assert!(!take(&mut observed), "it is handed in a pause, too");
    observed.desired = Err(revision::gone(NEW));
    object(&mut observed)["spec"]["minReadySeconds"] = 0.into();
    assert!(
        matches!(decide(&observed), Action::Scale { heals: true, is_former: false, .. }),
        "without a rendering, too"
    );
}

#[test]
fn a_zero_that_the_server_leaves_out_is_handed_once() {
    let mut observed = rendering(None);
    set(&mut observed, Some(0), None);
    take(&mut observed);
    object(&mut observed)["spec"]["minReadySeconds"] = Value::Null;
    assert!(is_at_rest(&observed));
}

#[test]
fn a_stored_revision_with_another_value_is_gone_back_to_without_a_fight() {
    let mut observed = rendering(None);
    set(&mut observed, Some(10), None);
    take(&mut observed);
    observed.revisions.insert(0, revision(0, "old"));
    renders(&mut observed, "old", Some(7));
    observed.revisions.swap(0, 1);
    assert!(!take(&mut observed));
    assert_eq!(object(&mut observed)["metadata"]["annotations"][keys::HASH], "old");
    assert_eq!((seconds_of(&mut observed), is_at_rest(&observed)), (Some(10), true));
    spec(&mut observed).min_ready_seconds = None;
    renders(&mut observed, "old", Some(7));
    take(&mut observed);
    assert_eq!((seconds_of(&mut observed), is_at_rest(&observed)), (Some(7), true));
}

#[test]
fn a_handed_field_in_a_map_of_the_template_is_no_addition() {
    let mut observed = with_contract(rendering(None), |contract| {
        contract.min_ready_seconds = Some("spec.parameters.ripe".parse().unwrap());
    });
    spec(&mut observed).min_ready_seconds = Some(5);
    let kind = observed.desired.as_ref().unwrap().kind.clone();
    observed.desired = Ok(Desired::new(&observed.deployment, rendered(NEW), kind));
    take(&mut observed);
    assert_eq!(object(&mut observed)["spec"]["parameters"]["ripe"], 5);
    assert!(is_at_rest(&observed), "{:?}", decide(&observed));
}

#[test]
fn a_kind_without_the_field_gets_nothing_and_that_is_told() {
    let mut observed = with_contract(rendering(None), |contract| contract.min_ready_seconds = None);
    spec(&mut observed).min_ready_seconds = Some(5);
    let told = written(decide(&observed));
    assert!(told.ready);
    let message = &Conditions::find(&told.conditions, Conditions::READY).unwrap().message;
    assert!(message.contains("; contract.minReadySeconds of the child's kind names no field"), "{message}");
}

#[test]
fn former_children_are_handed_the_policy_by_which_they_report_ends() {
    let mut observed = switched();
    spec(&mut observed).pod_replacement_policy = Some(TerminationComplete);
    renders(&mut observed, NEW, None);
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}, "status": {"active": 0}})));
    let handed = decide(&observed);
    assert!(matches!(handed, Action::Scale { replicas: 3, heals: false, is_former: true, .. }), "{handed:?}");
    let broken = json!({"status": {"active": "3"}});
    observed.others = vec![deployment_child(broken)];
    assert!(!matches!(decide(&observed), Action::Scale { is_former: true, .. }), "it is not written to");
}
