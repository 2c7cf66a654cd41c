//! Changes by somebody else are undone, but not more often than the kit allows.

use operator_kit::{report::Conditions, run::Backoffs};

use super::*;
use crate::step;

/// A child with an additional key in the map that its template renders.
fn with_a_key() -> Observed {
    ours(json!({"spec": {"parameters": {"env.EVIL": "yes"}}}))
}

/// A child that somebody else has scaled.
fn scaled() -> Observed {
    let mut observed = ours(json!({"spec": {"replicas": 5}}));
    observed.given_replicas.insert("child".into(), 3);
    observed
}

/// The same after a change was undone too often in each of these steps.
fn slowed_down(observed: Observed, steps: &[&'static str]) -> Observed {
    let failure = Failure::transient("RepeatedWrites", "the field manager \"hpa\" keeps changing it");
    let held = steps.iter().fold(Backoffs::default(), |held, step| held.and_step(step, failure.clone()));
    Observed { backoffs: held, ..observed }
}

#[test]
fn a_key_that_somebody_adds_to_a_rendered_map_is_taken_away() {
    let Action::Strip { child, field, patch } = decide(&with_a_key()) else { panic!() };
    assert_eq!((child.uid.as_str(), field.as_str()), ("child", "spec.parameters.env.EVIL"));
    let metadata = json!({"namespace": "shop", "name": "web", "uid": "child"});
    assert_eq!(patch, json!({"metadata": metadata, "spec": {"parameters": {"env.EVIL": null}}}));
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
fn while_a_fight_is_slowed_down_nothing_is_undone_and_what_is_not_as_rendered_is_not_ready() {
    let disowned = observed(Found::Orphan(child(json!({"metadata": {"ownerReferences": null}}))));
    let edited = ours(json!({"spec": {"parameters": {"image": "evil"}}}));
    for fought_over in [disowned, edited, scaled(), with_a_key()] {
        let undone = decide(&fought_over).step();
        let mut observed = slowed_down(fought_over, &[undone]);
        assert!(!observed.is_served(), "no former child goes");
        let status = written(decide(&observed));
        assert_eq!(ready(&status), (false, "RepeatedWrites".into()));
        let message = &Conditions::find(&status.conditions, Conditions::READY).unwrap().message;
        assert!(message.contains("\"hpa\""), "{message}");
        assert!(Conditions::is_true(&status.conditions, Conditions::RECONCILING));
        assert!(Conditions::find(&status.conditions, Conditions::STALLED).is_none(), "it goes on");
        let blocker = status.blocked_by.clone().unwrap();
        assert_eq!((&*blocker.kind, &*blocker.reason), ("BasicDeployment", "RepeatedWrites"));
        Arc::make_mut(&mut observed.deployment).status = Some(status);
        assert_eq!(decide(&observed), Action::Settle, "the kit tries it again");
    }
}

#[test]
fn a_fight_about_one_field_holds_up_no_other_repair() {
    let damage = json!({"spec": {"replicas": 5, "parameters": {"image": "evil", "env.EVIL": "yes"}}});
    let damaged = Observed { given_replicas: scaled().given_replicas, ..ours(damage) };
    let repair = |held: &[&'static str]| decide(&slowed_down(damaged.clone(), held));
    assert!(matches!(repair(&[]), Action::Apply { heals: true, .. }));
    assert!(matches!(repair(&[step::HEAL]), Action::Strip { .. }));
    assert!(matches!(
        repair(&[step::HEAL, step::STRIP]),
        Action::Scale { heals: true, is_former: false, .. }
    ));
    let recorded = repair(&[step::FOLLOW]);
    assert!(matches!(recorded, Action::Apply { heals: true, .. }), "its rendering is known");
}

#[test]
fn a_pod_that_does_not_serve_is_named_beside_a_fight() {
    let blocker = json!({"apiVersion": "v1", "kind": "Pod", "name": "web-1", "reason": "ImagePullBackOff", "message": "no such image"});
    let mut observed = scaled();
    let Found::Ours(child) = &mut observed.child else { panic!() };
    Arc::make_mut(child).outputs.blocked_by = Some(serde_json::from_value(blocker).unwrap());
    let status = written(decide(&slowed_down(observed, &[step::HEAL_SCALE])));
    let message = &Conditions::find(&status.conditions, Conditions::READY).unwrap().message;
    assert!(
        message.contains("\"hpa\"") && message.contains("Pod web-1 is not ready: ImagePullBackOff"),
        "{message}"
    );
}

#[test]
fn the_wishes_of_the_deployment_itself_do_not_wait_for_the_end_of_a_fight() {
    let mut wanted = slowed_down(scaled(), &[step::HEAL_SCALE]);
    spec(&mut wanted).replicas = 4;
    assert!(matches!(decide(&wanted), Action::Scale { heals: false, replicas: 4, is_former: false, .. }));
    let old = json!({"metadata": {"annotations": {keys::HASH: "old"}}});
    let outdated = slowed_down(ours(old), &[step::HEAL, step::STRIP]);
    assert!(matches!(decide(&outdated), Action::Apply { heals: false, .. }));
    let mut restarted = scaled();
    spec(&mut restarted).restarted_at = Some("2026-01-01T00:00:00Z".into());
    assert!(matches!(decide(&slowed_down(restarted, &[step::HEAL_SCALE])), Action::Restart { .. }));
}

#[test]
fn what_a_former_child_was_given_makes_no_fight_of_scaling_the_wanted_one() {
    let mut observed = ours(json!({"spec": {"replicas": 5}}));
    observed.given_replicas.insert("other".into(), 3);
    assert!(matches!(
        decide(&slowed_down(observed, &[step::HEAL_FORMER])),
        Action::Scale { heals: false, is_former: false, .. }
    ));
}

#[test]
fn the_field_that_was_changed_is_named() {
    let changed = child(json!({"spec": {"parameters": {"image": "evil"}}}));
    assert_eq!(changed_field(&changed, &desired(), None).as_deref(), Some("spec.parameters.image"));
    assert_eq!(changed_field(&child(json!({})), &desired(), None), None);
    let disowned = child(json!({"metadata": {"ownerReferences": null}}));
    assert_eq!(changed_field(&disowned, &desired(), None).as_deref(), Some("metadata.ownerReferences"));
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

/// A child whose rendering has a list of containers, with one container changed. Its form after the last apply is known, or not.
fn with_container(changes: Value, is_known: bool) -> Observed {
    let mut container = json!({
        "name": "main", "image": "a", "env": [{"name": "VERSION", "value": "1.0"}],
        "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}},
    });
    let mut wanted = desired();
    merge(&mut wanted.object, json!({"spec": {"containers": [container]}}));
    merge(&mut container, changes);
    let mut observed = ours(json!({"spec": {"containers": [container]}}));
    observed.settled_as = is_known.then(|| wanted.comparable());
    observed.desired = Ok(wanted);
    observed
}

#[test]
fn another_form_of_the_same_meaning_is_no_change_of_a_list() {
    for same in [
        json!({}),
        json!({"livenessProbe": {}, "args": [], "lifecycle": null, "securityContext": {"capabilities": {}}}),
        json!({"resources": {"limits": {"cpu": "1", "memory": "1024Mi"}, "requests": {}}}),
        json!({"resources": {"limits": {"cpu": 1, "memory": 1_073_741_824}}}),
    ] {
        for is_known in [true, false] {
            let mut observed = with_container(same.clone(), is_known);
            assert!(matches!(decide(&observed), Action::WriteStatus(_)), "{same}");
            spec(&mut observed).paused = true;
            assert!(written(decide(&observed)).ready, "{same}");
        }
    }
}

#[test]
fn whatever_else_somebody_changes_in_a_list_is_undone() {
    for other in [
        json!({"image": "evil"}),
        json!({"command": ["sleep"]}),
        json!({"securityContext": {"privileged": true}}),
        json!({"env": [{"name": "VERSION", "value": "1"}]}),
        json!({"env": [{"name": "VERSION", "value": "1.0"}, {"name": "EVIL", "value": ""}]}),
        json!({"env": [{"name": "VERSION", "value": "1.0", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}),
        json!({"resources": {"limits": {"cpu": "1001m"}}}),
        json!({"resources": {"limits": {"cpu": "many"}}}),
        json!({"resources": null}),
    ] {
        for is_known in [true, false] {
            let mut observed = with_container(other.clone(), is_known);
            assert!(matches!(decide(&observed), Action::Apply { heals: true, .. }), "{other}");
            spec(&mut observed).paused = true;
            let is_told = observed.changed_in_pause().as_deref() == Some("spec.containers");
            assert_eq!(is_told, is_known, "{other}");
        }
    }
    let mut added = with_container(json!({}), true);
    let Found::Ours(child) = &mut added.child else { panic!() };
    let containers = Arc::make_mut(child).object["spec"]["containers"].as_array_mut().unwrap();
    containers.push(json!({"name": "evil", "image": "evil"}));
    assert!(matches!(decide(&added), Action::Apply { heals: true, .. }));
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
    assert_eq!(Conditions::find(&status.conditions, Conditions::PROGRESSING).unwrap().status, "False");
    let message = &Conditions::find(&status.conditions, Conditions::READY).unwrap().message;
    assert!(message.contains("spec.parameters.image"), "{message}");
    let mut settled = ours(json!({}));
    settled.settled_as = Some(desired().comparable());
    spec(&mut settled).paused = true;
    assert!(written(decide(&settled)).ready, "nobody has changed it");
}
