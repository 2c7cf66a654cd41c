//! Repeated changes by somebody else are undone at a limited pace, and reported.

use super::*;

/// A child with an additional key in the map that its template renders.
fn with_a_key() -> Observed {
    ours(json!({"spec": {"parameters": {"env.EVIL": "yes"}}}))
}

#[test]
fn a_key_that_somebody_adds_to_a_rendered_map_is_taken_away() {
    let Action::Strip { child, additions } = decide(&with_a_key()) else { panic!() };
    let mut patch = json!({"metadata": {"uid": child.uid}});
    additions[0].removed_in(&mut patch);
    assert_eq!(additions.len(), 1);
    assert_eq!(patch, json!({"metadata": {"uid": "child"}, "spec": {"parameters": {"env.EVIL": null}}}));
}

#[test]
fn fields_outside_the_rendered_maps_stay_others() {
    let others = ours(json!({"spec": {"maxSurge": 2, "nodePool": {"a": "b"}}}));
    assert!(matches!(decide(&others), Action::WriteStatus(_)));
    let others = with_contract(others, |contract| contract.maps = vec!["spec.nodePool".parse().unwrap()]);
    assert!(matches!(decide(&others), Action::WriteStatus(_)), "the template does not render it");
    let keyed = with_contract(with_a_key(), |contract| contract.maps.clear());
    assert!(matches!(decide(&keyed), Action::WriteStatus(_)), "the kind has no such map");
}

#[test]
fn a_restart_token_that_stands_in_a_rendered_map_is_no_addition() {
    let observed = ours(json!({"spec": {"parameters": {"restartedAt": "1970-01-01T00:00:10Z"}}}));
    let token = "spec.parameters.restartedAt".parse().unwrap();
    let observed = with_contract(observed, |contract| contract.restarted_at = Some(token));
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn a_fight_about_the_replicas_is_slowed_down_and_the_deployments_own_wish_is_not() {
    let mut observed = ours(json!({"spec": {"replicas": 5}}));
    observed.given_replicas.insert("child".into(), 3);
    assert!(matches!(decide(&observed), Action::Scale { heals: true, .. }));
    undone(&mut observed, Part::Replicas, "spec.replicas", 1, 1);
    let status = written(decide(&observed));
    Arc::make_mut(&mut observed.deployment).status = Some(status);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(4)));
    spec(&mut observed).replicas = 4;
    assert!(matches!(decide(&observed), Action::Scale { heals: false, .. }));
}

#[test]
fn what_a_former_child_was_given_makes_no_contest_of_scaling_the_wanted_one() {
    let mut observed = ours(json!({"spec": {"replicas": 5}}));
    observed.given_replicas.insert("other".into(), 3);
    undone(&mut observed, Part::Replicas, "spec.replicas", 1, 1);
    assert!(matches!(decide(&observed), Action::Scale { heals: false, .. }));
}

#[test]
fn each_part_is_put_back_at_a_pace_of_its_own() {
    let mut observed = with_a_key();
    undone(&mut observed, Part::Replicas, "spec.replicas", 1, 1);
    assert!(matches!(decide(&observed), Action::Strip { .. }));
    undone(&mut observed, Part::Additions, "spec.parameters[\"env.EVIL\"]", 1, 1);
    assert!(matches!(decide(&observed), Action::WriteStatus(_)));
}

#[test]
fn a_contest_is_told_with_its_field_and_until_it_is_over() {
    let mut observed = ours(json!({}));
    undone(&mut observed, Part::Replicas, "spec.replicas", 20, 2);
    assert!(conditions::find(&written(decide(&observed)).conditions, "Contested").is_none(), "a slip");
    undone(&mut observed, Part::Replicas, "spec.replicas", 20, 3);
    let status = written(decide(&observed));
    let told = conditions::find(&status.conditions, "Contested").unwrap();
    assert!(told.message.contains("spec.replicas"), "{}", told.message);
    Arc::make_mut(&mut observed.deployment).status = Some(status);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(40)));
    undone(&mut observed, Part::Replicas, "spec.replicas", 60, 3);
    assert!(conditions::find(&written(decide(&observed)).conditions, "Contested").is_none());
}

#[test]
fn the_field_that_was_changed_is_named() {
    let changed = child(json!({"spec": {"parameters": {"image": "evil"}}}));
    assert_eq!(changed_field(&changed, &desired(), None).as_deref(), Some("spec.parameters.image"));
    assert_eq!(changed_field(&child(json!({})), &desired(), None), None);
}

/// A pod template, as it is rendered and on the server, which adds defaults to its containers.
fn pod(image: &str, node: i64, defaults: Value) -> Value {
    let mut container = json!({"image": image});
    merge(&mut container, defaults);
    json!({"spec": {"containers": [container], "nodeSelector": {"x": node}}})
}

#[test]
fn defaults_inside_a_list_are_no_change_of_it() {
    let mut wanted = desired();
    merge(&mut wanted.object, pod("a", 2, json!({})));
    let field = |live: Value| changed_field(&child(live), &wanted, None);
    let defaults = json!({"imagePullPolicy": "Always"});
    assert_eq!(field(pod("a", 1, defaults.clone())).as_deref(), Some("spec.nodeSelector.x"));
    assert_eq!(field(pod("a", 2, defaults.clone())), None);
    assert_eq!(field(pod("b", 1, defaults)).as_deref(), Some("spec.containers"));
    assert_eq!(field(json!({"spec": {"containers": []}})).as_deref(), Some("spec.containers"));
}

#[test]
fn a_change_of_what_the_server_made_of_the_rendering_is_named() {
    let mut wanted = desired();
    merge(&mut wanted.object, pod("a", 2, json!({})));
    let of = |policy: &str, node: i64| child(pod("a", node, json!({"imagePullPolicy": policy})));
    let settled = wanted.seen_in(&of("Always", 2).object);
    let field = |live: &Child| changed_field(live, &wanted, Some(&settled));
    assert_eq!(field(&of("Always", 1)).as_deref(), Some("spec.nodeSelector.x"));
    assert_eq!(field(&of("Never", 2)).as_deref(), Some("spec.containers"));
    assert_eq!(field(&of("Always", 2)), None);
}

#[test]
fn a_change_by_somebody_else_that_a_pause_keeps_is_not_reported_as_ready() {
    let mut observed = ours(json!({"spec": {"parameters": {"image": "theirs"}}}));
    spec(&mut observed).paused = true;
    assert!(
        written(decide(&observed)).ready,
        "the server may store it in another form than the template has"
    );
    observed.settled_as = Some(desired().comparable());
    assert!(observed.is_served(), "an exchange goes on");
    let status = written(decide(&observed));
    assert_eq!(ready(&status), (false, "ChangedWhilePaused".to_owned()));
    assert_eq!(conditions::find(&status.conditions, conditions::PROGRESSING).unwrap().status, "False");
    let message = &conditions::find(&status.conditions, conditions::READY).unwrap().message;
    assert!(message.contains("spec.parameters.image"), "{message}");
    let mut settled = ours(json!({}));
    settled.settled_as = Some(desired().comparable());
    spec(&mut settled).paused = true;
    assert!(written(decide(&settled)).ready, "nobody has changed it");
}
