//! Former children, of other names or kinds, are exchanged for the wanted one within a budget.

use super::{former::without, *};
use crate::events;
use catena_api::PodReplacementPolicy;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A child of another kind, with the same name.
pub(super) fn deployment_child(changes: Value) -> Arc<Child> {
    let mut object = fixtures::child_object("web", "deployment-child");
    merge(&mut object, json!({"metadata": {"annotations": {keys::HASH: "former"}}}));
    merge(&mut object, changes);
    Arc::new(Child::of(serde_json::from_value(object).unwrap(), &deployments()))
}

pub(super) fn deployments() -> Arc<ChildKind> {
    let kind = ChildKind::clone(&replica_sets());
    Arc::new(ChildKind { api_version: "apps/v1".into(), kind: "Deployment".into(), ..kind })
}

/// A `BasicDeployment` whose child of another kind serves, while the wanted one does not exist.
pub(super) fn switched() -> Observed {
    let mut observed = observed(Found::Nothing);
    observed.kinds.push(fixtures::listed(deployments()));
    observed.others = vec![deployment_child(json!({}))];
    observed
}

#[test]
fn a_child_of_another_kind_is_created_beside_the_former_one_with_the_room_that_there_is() {
    let mut observed = switched();
    assert_eq!(decide(&observed), create_with(desired(), 1));
    let note = events::of(&observed, &decide(&observed)).unwrap().note.unwrap();
    assert!(note.starts_with("created BasicReplicaSet web with 1 of 3 replicas, "), "{note}");
    spec(&mut observed).max_surge = IntOrString::Int(0);
    assert_eq!(decide(&observed), create_with(desired(), 0));
    spec(&mut observed).max_surge = IntOrString::String("100%".into());
    assert_eq!(decide(&observed), create_with(desired(), 3));
}

#[test]
fn the_former_kind_goes_step_by_step_and_is_named_meanwhile() {
    let mut observed = switched();
    let replicas = |replicas, active| json!({"spec": {"replicas": replicas}, "status": {"active": active}});
    observed.child = Found::Ours(child(replicas(1, 0)));
    let status = written(decide(&observed));
    assert_eq!((status.active, status.replicas, ready(&status).1), (3, 4, "Exchanging".into()));
    let message = &Conditions::find(&status.conditions, Conditions::PROGRESSING).unwrap().message;
    assert_eq!(message, "3 of 3 replicas are serving, 3 of them of the former Deployment \"web\"");
    observed.child = Found::Ours(child(replicas(1, 1)));
    let former = observed.others[0].clone();
    assert_eq!(
        decide(&observed),
        Action::Scale { child: former, replicas: 2, heals: false, is_former: true }
    );
    observed.others = vec![deployment_child(replicas(2, 3))];
    let Action::Scale { replicas: 2, is_former: false, .. } = decide(&observed) else { panic!() };
    observed.child = Found::Ours(child(json!({})));
    assert_eq!(decide(&observed), Action::Delete(observed.others.clone()));
}

#[test]
fn a_new_replica_replaces_a_former_one_once_it_has_been_ready_for_as_long_as_it_has_to() {
    let mut observed = switched();
    let wanted = |replicas: i32, available: Value| {
        let status = json!({"active": replicas, "available": available});
        Found::Ours(child(json!({"spec": {"replicas": replicas}, "status": status})))
    };
    observed.child = wanted(1, json!(0));
    let told = written(decide(&observed));
    let message = &Conditions::find(&told.conditions, Conditions::READY).unwrap().message;
    assert!(message.ends_with("; 1 are ready for less than minReadySeconds"), "{message}");
    for counted in [json!(1), Value::Null] {
        observed.child = wanted(1, counted);
        assert!(matches!(decide(&observed), Action::Scale { replicas: 2, is_former: true, .. }));
    }
    observed.child = wanted(3, json!(2));
    assert!(!observed.is_served(), "one of them is ready since a moment ago");
    observed.child = wanted(3, json!(3));
    assert!(observed.is_served());
}

/// One replica without a surge, whose end is awaited.
fn awaiting_ends() -> Observed {
    let mut observed = switched();
    let spec = spec(&mut observed);
    (spec.replicas, spec.max_surge) = (1, IntOrString::Int(0));
    spec.pod_replacement_policy = Some(PodReplacementPolicy::TerminationComplete);
    observed.desired = Ok(Desired::new(&observed.deployment, rendered(NEW), replica_sets()));
    observed
}

/// What a child has that was handed the policy, with these numbers.
fn handed(replicas: i32, active: i32, terminating: Option<i32>) -> Value {
    let record = json!({"spec.podReplacementPolicy": "TerminationComplete"}).to_string();
    json!({
        "metadata": {"annotations": {keys::HANDED: record}},
        "spec": {"replicas": replicas, "podReplacementPolicy": "TerminationComplete"},
        "status": {"active": active, "terminating": terminating},
    })
}

#[test]
fn a_new_replica_waits_for_the_end_of_a_former_one_if_somebody_asks_for_that() {
    let mut observed = awaiting_ends();
    observed.child = Found::Ours(child(handed(0, 0, Some(0))));
    let grows =
        |observed: &Observed| matches!(decide(observed), Action::Scale { replicas: 1, is_former: false, .. });
    let mut outdated = handed(0, 0, Some(0));
    outdated["status"]["observedGeneration"] = 0.into();
    for (why, former) in [
        ("it terminates", handed(0, 0, Some(1))),
        ("it is about to", handed(0, 1, Some(0))),
        ("nobody knows", handed(0, 0, None)),
        ("that is about another spec", outdated),
    ] {
        observed.others = vec![deployment_child(former)];
        assert!(!grows(&observed), "{why}");
        let mut hasty = observed.clone();
        spec(&mut hasty).pod_replacement_policy = Some(PodReplacementPolicy::TerminationStarted);
        let share = crate::decide::exchange::share_of_wanted(hasty.child.ours(), &hasty);
        assert_eq!(share, 1, "{why}, and nobody waits for that");
    }
    observed.others = vec![deployment_child(handed(0, 0, Some(0)))];
    assert!(grows(&observed));
    observed.others.clear();
    observed.child = Found::Ours(child(handed(0, 0, None)));
    assert!(grows(&observed), "within one child, that child decides");
}

#[test]
fn no_replica_of_the_new_child_goes_because_former_ones_terminate() {
    let mut observed = awaiting_ends();
    spec(&mut observed).replicas = 3;
    observed.child = Found::Ours(child(handed(2, 1, Some(0))));
    observed.others = vec![deployment_child(handed(1, 1, Some(2)))];
    assert!(!matches!(decide(&observed), Action::Scale { is_former: false, .. }), "{:?}", decide(&observed));
}

#[test]
fn ready_waits_for_the_end_of_replicas_if_somebody_asks_for_that() {
    let mut observed = awaiting_ends();
    observed.child = Found::Ours(child(handed(1, 1, Some(0))));
    let mut deleted = handed(0, 0, Some(1));
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    observed.others = vec![deployment_child(deleted)];
    let message = |observed: &Observed| {
        let told = status(observed);
        assert!(!told.ready);
        Conditions::find(&told.conditions, Conditions::READY).unwrap().message.clone()
    };
    let told = message(&observed);
    let end = "waits for the end of 1 of the replicas of Deployment \"web\" (contract.terminating)";
    assert!(told.ends_with(end), "{told}");
    observed.others.clear();
    assert!(status(&observed).ready);
    observed.child = Found::Ours(child(handed(1, 1, None)));
    let told = message(&observed);
    assert!(told.contains("an unknown number of the replicas of BasicReplicaSet \"web\""), "{told}");
    spec(&mut observed).pod_replacement_policy = None;
    assert!(status(&observed).ready, "nobody asks");
}

pub(super) fn revision_of_deployments() -> Arc<Revision> {
    let mut former = Revision::clone(&revision(0, "former"));
    former.kind = ("apps/v1".into(), "Deployment".into());
    Arc::new(former)
}

/// The last child is of a kind that is no longer listed.
pub(super) fn unlisted(mut observed: Observed) -> Observed {
    observed.kinds.retain(|listed| listed.kind.kind != "Deployment");
    observed.revisions = vec![revision_of_deployments()];
    observed.unlisted = Some(Failure::stalled("KindNotListed", "it is not seen"));
    observed
}

#[test]
fn no_child_is_made_or_becomes_the_wanted_one_while_the_last_one_is_of_a_kind_that_is_not_seen() {
    let mut switched = switched();
    switched.others.clear();
    for child in [Found::Nothing, Found::Ours(child(json!({}))), Found::Orphan(child(json!({})))] {
        let mut observed = unlisted(Observed { child, ..switched.clone() });
        observed.since_progress = Duration::from_secs(6000);
        let refused = decide(&observed);
        let Action::Refuse(refusal) = &refused else { panic!("{refused:?}") };
        assert_eq!(refusal.message, "it is not seen");
        observed.backoffs = without(&refused, "KindNotListed", "it may still run");
        spec(&mut observed).revision_history_limit = 0;
        let status = written(decide(&observed));
        assert_eq!(ready(&status), (false, "KindNotListed".into()));
        Arc::make_mut(&mut observed.deployment).status = Some(status);
        assert_eq!(decide(&observed), Action::Settle, "its revision stays");
    }
}

#[test]
fn the_numbers_of_a_child_that_is_not_seen_stay() {
    let mut observed = switched();
    observed.child = Found::Ours(observed.others.remove(0));
    let told = status(&observed);
    assert_eq!((told.active, told.replicas), (3, 3));
    assert_eq!(told.child.as_ref().map(|child| &*child.kind), Some("Deployment"));
    Arc::make_mut(&mut observed.deployment).status = Some(told.clone());
    observed.child = Found::Nothing;
    let lost = status(&unlisted(observed));
    assert_eq!((lost.active, lost.replicas, lost.progress, lost.ready), (3, 3, told.progress, false));
    assert_eq!(lost.child, told.child, "it is not forgotten");
}

/// A former child with its own revision.
fn former(number: i64, replicas: i32, active: i32) -> Arc<Child> {
    child(json!({
        "metadata": {
            "name": format!("web-{number}"), "uid": format!("former-{number}"),
            "annotations": {keys::HASH: format!("r{number}")},
        },
        "spec": {"replicas": replicas}, "status": {"active": active},
    }))
}

/// Former children of the revisions 1, 2 and 3, beside a wanted child that does not serve.
fn beside_a_bad_one(others: Vec<Arc<Child>>) -> Observed {
    let mut observed = ours(json!({"spec": {"replicas": 1}, "status": {"active": 0}}));
    let revisions = [(1, "r1"), (2, "r2"), (3, "r3"), (4, NEW)];
    observed.revisions = revisions.map(|(number, hash)| revision(number, hash)).to_vec();
    observed.others = others;
    observed
}

#[test]
fn former_children_that_never_served_go_when_they_are_empty_but_never_the_one_that_may_have() {
    let others = vec![former(1, 3, 3), former(2, 0, 0), former(3, 0, 0)];
    let observed = beside_a_bad_one(others.clone());
    assert_eq!(decide(&observed), Action::Delete(others[1..].to_vec()));
    // Nobody knows what those still run.
    let running = child(json!({
        "metadata": {"uid": "former-2", "generation": 2, "annotations": {keys::HASH: "r2"}}, "spec": {"replicas": 0},
        "status": {"active": 0},
    }));
    for kept in [running, former(2, 0, 1)] {
        let observed = beside_a_bad_one(vec![former(1, 3, 3), kept]);
        assert!(!matches!(decide(&observed), Action::Delete(_)), "{:?}", decide(&observed));
    }
    let mut none_needed = beside_a_bad_one(vec![former(1, 0, 0), former(2, 0, 0)]);
    spec(&mut none_needed).max_surge = IntOrString::Int(0);
    spec(&mut none_needed).max_unavailable = IntOrString::String("100%".into());
    none_needed.child = Found::Ours(child(json!({"status": {"active": 0}})));
    assert_eq!(decide(&none_needed), Action::Delete(vec![none_needed.others[1].clone()]));
}

#[test]
fn former_children_that_serve_least_are_emptied_first() {
    let observed = beside_a_bad_one(vec![former(1, 3, 1), former(2, 1, 0)]);
    let Action::Scale { child, replicas: 0, is_former: true, .. } = decide(&observed) else {
        panic!("{:?}", decide(&observed))
    };
    assert_eq!(child.uid, "former-2");
}

#[test]
fn a_pin_makes_the_child_of_the_former_kind_the_wanted_one() {
    let mut observed = observed(Found::Nothing);
    observed.others = vec![child(json!({}))];
    observed.kinds.push(fixtures::listed(deployments()));
    let mut former = Revision::clone(&revision(2, "former"));
    former.kind = ("apps/v1".into(), "Deployment".into());
    observed.revisions.push(Arc::new(former));
    let target = Desired::new(&deployment(), rendered("former"), deployments());
    let pinned = Observed { pin: Some(pin("former", NEW)), desired: Ok(target.clone()), ..observed };
    assert_eq!(decide(&pinned), Action::Create { desired: target, replicas: 1 });
}

#[test]
fn a_new_child_leaves_the_room_of_a_former_one_that_somebody_scaled_down() {
    let mut observed = switched();
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}, "status": {"active": 0}})));
    observed.others = vec![deployment_child(json!({"spec": {"replicas": 0}, "status": {"active": 0}}))];
    observed.given_replicas.insert("deployment-child".into(), 3);
    let healed = decide(&observed);
    assert!(matches!(healed, Action::Scale { heals: true, replicas: 3, is_former: true, .. }));
    observed.backoffs = without(&healed, "RepeatedWrites", "the field manager \"hpa\" keeps changing it");
    let told = written(decide(&observed));
    assert_eq!(ready(&told), (false, "Exchanging".into()));
    Arc::make_mut(&mut observed.deployment).status = Some(told);
    let waits = decide(&observed);
    assert!(matches!(waits, Action::Wait(_) | Action::Settle), "the wanted one does not grow: {waits:?}");
    observed.given_replicas.insert("deployment-child".into(), 2);
    let wish = decide(&observed);
    assert!(
        matches!(wish, Action::Scale { heals: false, replicas: 3, is_former: true, .. }),
        "no fight holds it up: {wish:?}"
    );
}

#[test]
fn ready_waits_for_the_end_of_former_replicas_and_names_them() {
    let mut observed = switched();
    observed.child = Found::Ours(child(json!({})));
    observed.others = vec![deployment_child(json!({"spec": {"replicas": 0}, "status": {"active": 0}}))];
    let told = status(&observed);
    assert_eq!(ready(&told), (false, "Exchanging".into()), "it is about to be deleted");

    let leaving = |active| {
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        deployment_child(json!({"metadata": deleted, "status": {"active": active}}))
    };
    observed.others = vec![leaving(2)];
    let told = status(&observed);
    assert_eq!(ready(&told), (false, "Exchanging".into()));
    let message = &Conditions::find(&told.conditions, Conditions::READY).unwrap().message;
    let named = "Deployment \"web\" is being deleted, and 2 of its replicas still serve";
    assert!(message.contains(named), "{message}");
    observed.others = vec![leaving(0)];
    let told = status(&observed);
    assert_eq!(ready(&told), (true, "Complete".into()));
    assert!(told.former_children.is_empty(), "it would be missed if its kind were no longer listed");
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    observed.others = vec![deployment_child(json!({"metadata": deleted, "status": {"active": "2"}}))];
    assert!(!status(&observed).ready, "nobody knows how many of its replicas serve");
}
