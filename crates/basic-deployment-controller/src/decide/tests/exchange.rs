//! Former children, of other names or kinds, are exchanged for the wanted one within a budget.

use catena_api::BasicDeploymentSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use operator_kit::{
    report::{Category, Failure},
    run::HeldUp,
};
use proptest::prelude::*;

use super::{former::without, *};
use crate::{
    budget::{Budget, Count},
    milestones::{self, Step},
};

/// A child of another kind, with the same name.
fn deployment_child(changes: Value) -> Arc<Child> {
    let mut object = fixtures::child_object("web", "deployment-child");
    merge(&mut object, json!({"metadata": {"annotations": {keys::HASH: "former"}}}));
    merge(&mut object, changes);
    Arc::new(Child::of(serde_json::from_value(object).unwrap(), &deployments()))
}

fn deployments() -> Arc<ChildKind> {
    let kind = ChildKind::clone(&replica_sets());
    Arc::new(ChildKind { api_version: "apps/v1".into(), kind: "Deployment".into(), ..kind })
}

/// A `BasicDeployment` whose child of another kind serves, while the wanted one does not exist.
fn switched() -> Observed {
    let mut observed = observed(Found::Nothing);
    observed.kinds.push(fixtures::listed(deployments()));
    observed.others = vec![deployment_child(json!({}))];
    observed
}

#[test]
fn a_child_of_another_kind_is_created_beside_the_former_one_with_the_room_that_there_is() {
    let mut observed = switched();
    assert_eq!(decide(&observed), Action::Create { desired: desired(), replicas: 1 });
    let Some(Step::Begins(told)) = milestones::of(&observed, &decide(&observed), None) else { panic!() };
    assert!(told.note.starts_with("created BasicReplicaSet web with 1 of 3 replicas, "), "{}", told.note);
    spec(&mut observed).max_surge = IntOrString::Int(0);
    assert_eq!(decide(&observed), Action::Create { desired: desired(), replicas: 0 });
    spec(&mut observed).max_surge = IntOrString::String("100%".into());
    assert_eq!(decide(&observed), Action::Create { desired: desired(), replicas: 3 });
}

#[test]
fn the_former_kind_goes_step_by_step_and_is_named_meanwhile() {
    let mut observed = switched();
    let replicas = |replicas, active| json!({"spec": {"replicas": replicas}, "status": {"active": active}});
    observed.child = Found::Ours(child(replicas(1, 0)));
    let status = written(decide(&observed));
    assert_eq!((status.active, status.replicas, ready(&status).1), (3, 4, "Exchanging".into()));
    let message = &conditions::find(&status.conditions, conditions::PROGRESSING).unwrap().message;
    assert_eq!(message, "3 of 3 replicas are serving, 3 of them of the former Deployment \"web\"");
    observed.child = Found::Ours(child(replicas(1, 1)));
    let former = observed.others[0].clone();
    assert_eq!(decide(&observed), Action::ScaleFormer { child: former, replicas: 2, heals: false });
    observed.others = vec![deployment_child(replicas(2, 3))];
    let Action::Scale { replicas: 2, .. } = decide(&observed) else { panic!() };
    observed.child = Found::Ours(child(json!({})));
    assert_eq!(decide(&observed), Action::Delete(observed.others.clone()));
}

#[test]
fn a_former_child_that_breaks_the_contract_is_told_and_not_written_to() {
    let mut observed = switched();
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}, "status": {"active": 1}})));
    observed.others = vec![deployment_child(json!({"status": {"active": "3"}}))];
    let refused = decide(&observed);
    let Action::RefuseFormer(refusal) = &refused else { panic!("{refused:?}") };
    assert_ne!(refused.step(), Action::Settle.step(), "it holds up everything");
    observed.attempt = without(&refused, "ContractBroken", &refusal.to_string());
    let status = written(decide(&observed));
    let blocker = status.blocked_by.as_ref().unwrap();
    assert_eq!((&*blocker.name, &*blocker.reason), ("web", "ContractBroken"));
    let message = &conditions::find(&status.conditions, conditions::READY).unwrap().message;
    assert!(
        message.contains("the former Deployment \"web\" breaks the replica contract: contract.active"),
        "{message}"
    );
    assert!(message.ends_with("an integer"), "it is told twice: {message}");
}

fn revision_of_deployments() -> Arc<Revision> {
    let mut former = Revision::clone(&revision(0, "former"));
    former.kind = ("apps/v1".into(), "Deployment".into());
    Arc::new(former)
}

#[test]
fn no_child_is_made_while_the_last_one_is_of_a_kind_that_is_not_seen() {
    let mut observed = switched();
    observed.child = Found::Ours(observed.others.remove(0));
    let told = status(&observed);
    assert_eq!(told.child.as_ref().map(|child| &*child.kind), Some("Deployment"));
    Arc::make_mut(&mut observed.deployment).status = Some(told.clone());
    observed.child = Found::Nothing;
    observed.kinds.pop();
    assert_eq!(decide(&observed), create(desired()), "the status was restored from another cluster");
    observed.revisions.insert(0, revision_of_deployments());
    let Action::Refuse(refusal) = decide(&observed) else { panic!() };
    assert!(refusal.to_string().contains("Deployment \"web\", is of a kind that children"), "{refusal}");
    assert_eq!(status(&observed).child, told.child, "it is not forgotten");
    observed.kinds.push(fixtures::listed(deployments()));
    assert_eq!(decide(&observed), create(desired()), "it is seen to be gone");
}

#[test]
fn an_exchange_does_not_end_beside_a_former_child_of_a_kind_that_is_not_seen() {
    let mut observed = switched();
    observed.revisions.insert(0, revision_of_deployments());
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}, "status": {"active": 0}})));
    let told = status(&observed);
    assert_eq!(told.former_children.iter().map(|former| &*former.kind).collect::<Vec<_>>(), ["Deployment"]);
    Arc::make_mut(&mut observed.deployment).status = Some(told.clone());
    observed.kinds.pop();
    observed.others.clear();
    let lost = status(&observed);
    assert_eq!(lost.former_children, told.former_children, "it is not forgotten");
    let message = &conditions::find(&lost.conditions, conditions::READY).unwrap().message;
    assert!(message.contains("Deployment \"web\" is of a kind that children no longer lists"), "{message}");

    observed.child = Found::Ours(child(json!({})));
    Arc::make_mut(&mut observed.deployment).status = Some(status(&observed));
    let refused = decide(&observed);
    let Action::RefuseFormer(refusal) = &refused else { panic!("{refused:?}") };
    assert!(refusal.to_string().contains("Deployment \"web\", is of a kind that children"), "{refusal}");
    assert_eq!(ready(&status(&observed)), (false, "KindNotListed".into()));
    let failure = Failure::of(refusal);
    observed.attempt = Attempt::Without(HeldUp::default().and_step(refused.step(), failure));
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}})));
    assert!(matches!(decide(&observed), Action::Scale { .. }), "it holds up nothing else");
    observed.attempt = Attempt::Allowed;
    observed.child = Found::Ours(child(json!({})));
    observed.kinds.push(fixtures::listed(deployments()));
    assert!(status(&observed).ready, "it is seen to be gone");
    assert_eq!(status(&observed).former_children, []);
}

#[test]
fn a_former_child_is_not_forgotten_while_nobody_looks_for_it() {
    let mut observed = switched();
    observed.child = Found::Ours(child(json!({})));
    let told = status(&observed);
    Arc::make_mut(&mut observed.deployment).status = Some(told.clone());
    observed.others.clear();
    let refused = Failure {
        category: Category::Transient,
        reason: "WriteFailed",
        message: "no".into(),
        is_expected: false,
        next_retry: None,
    };
    observed.attempt = Attempt::Deferred(refused);
    assert_eq!(status(&observed).former_children, told.former_children);
    observed.attempt = Attempt::Allowed;
    assert_eq!(status(&observed).former_children, [], "it was looked for");
}

#[test]
fn the_numbers_of_a_child_that_is_not_seen_stay() {
    let mut observed = switched();
    observed.child = Found::Ours(observed.others.remove(0));
    observed.revisions.insert(0, revision_of_deployments());
    let told = status(&observed);
    assert_eq!((told.active, told.replicas), (3, 3));
    Arc::make_mut(&mut observed.deployment).status = Some(told.clone());
    observed.child = Found::Nothing;
    observed.kinds.pop();
    let lost = status(&observed);
    assert_eq!((lost.active, lost.replicas, lost.progress, lost.ready), (3, 3, told.progress, false));
}

#[test]
fn a_rollback_makes_the_child_of_the_former_kind_the_wanted_one() {
    let mut observed = ours(json!({}));
    observed.kinds.push(fixtures::listed(deployments()));
    let mut former = Revision::clone(&revision(0, "former"));
    former.kind = ("apps/v1".into(), "Deployment".into());
    observed.revisions.insert(0, Arc::new(former.clone()));
    assert_eq!(rollback::target(0, &observed).unwrap().hash, "former");
    let command = command(CommandKind::Rollback, "back", 10, json!({}));
    observed.commands = Some(vec![command]);
    let target = Desired::new(&deployment(), rendered("former"), deployments());
    let prepared = |target, found| Prepared { command: "back".into(), target: Some((target, found)) };
    observed.prepared = Some(prepared(target.clone(), Found::Nothing));
    assert_eq!(decide(&observed), Action::Create { desired: target, replicas: 1 });
    observed.kinds.pop();
    assert!(rollback::target(0, &observed).is_err(), "its kind is no longer listed");
}

#[test]
fn a_rollback_returns_to_the_former_kind_before_the_new_child_could_be_created() {
    let mut observed = switched();
    let former =
        Revision { kind: ("apps/v1".into(), "Deployment".into()), ..Revision::clone(&revision(0, "former")) };
    observed.revisions.insert(0, Arc::new(former));
    observed.commands = Some(vec![command(CommandKind::Rollback, "back", 10, json!({}))]);
    let target = Desired::new(&deployment(), rendered("former"), deployments());
    let found = Found::Ours(observed.others[0].clone());
    observed.prepared = Some(Prepared { command: "back".into(), target: Some((target, found)) });
    for wanted in [Found::Nothing, Found::Foreign(child(json!({})))] {
        observed.child = wanted;
        let Action::Apply { child, replicas: 3, .. } = decide(&observed) else { panic!() };
        assert_eq!(child.uid, "deployment-child");
    }
    observed.others.clear();
    let queue = CommandQueue::of(&observed);
    assert!(queue.next().is_none(), "there is nothing to return from");
}

#[test]
fn replicas_that_the_server_drops_are_a_breach_and_are_not_written_again() {
    let mut observed = ours(json!({"spec": {"replicas": null}}));
    Arc::make_mut(match &mut observed.child {
        Found::Ours(child) => child,
        _ => unreachable!(),
    })
    .object["spec"]
        .as_object_mut()
        .unwrap()
        .remove("replicas");
    assert!(matches!(decide(&observed), Action::Scale { .. }), "they were never set");
    observed.given_replicas.insert("child".into(), 3);
    let Action::Refuse(refusal) = decide(&observed) else { panic!() };
    assert!(refusal.to_string().contains("contract.replicas: spec.replicas was set"), "{refusal}");
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
    observed.since_progress = Duration::from_secs(600);
    let status = written(decide(&observed));
    let message = &conditions::find(&status.conditions, conditions::STALLED).unwrap().message;
    assert!(message.contains("contract.observedGeneration (status.observedGeneration)"), "{message}");
}

/// What a cluster makes of an exchange: the replicas of the former and the wanted child, and those of them that serve.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scene {
    former: Count,
    wanted: Count,
}

impl Scene {
    fn total(self) -> i32 {
        self.former.desired + self.wanted.desired
    }

    fn serving(self) -> i32 {
        self.former.serving + self.wanted.serving
    }

    /// The next write, of the former child first; a child that is scaled down loses replicas that do not serve first.
    fn step(self, budget: Budget) -> Self {
        let scaled = |count: Count, desired: i32| Count { desired, serving: count.serving.min(desired) };
        let former = budget.of_former(self.former, Some(self.wanted));
        if former != self.former.desired {
            return Self { former: scaled(self.former, former), ..self };
        }
        Self { wanted: scaled(self.wanted, budget.of_wanted(self.wanted, Some(self.former))), ..self }
    }
}

fn count(most: i32) -> impl Strategy<Value = Count> {
    (0..=most)
        .prop_flat_map(|desired| (Just(desired), 0..=desired))
        .prop_map(|(desired, serving)| Count { desired, serving })
}

fn amount() -> impl Strategy<Value = IntOrString> {
    prop_oneof![
        (0..12_i32).prop_map(IntOrString::Int),
        (0..=100_i32).prop_map(|percent| IntOrString::String(format!("{percent}%"))),
    ]
}

fn budget() -> impl Strategy<Value = Budget> {
    (0..12_i32, amount(), amount()).prop_map(|(replicas, max_surge, max_unavailable)| {
        Budget::of(&BasicDeploymentSpec { replicas, max_surge, max_unavailable, ..Default::default() })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_step_exceeds_the_budget_or_takes_serving_replicas_that_are_needed(
        budget in budget(), former in count(16), wanted in count(16),
    ) {
        let before = Scene { former, wanted };
        let after = before.step(budget);
        prop_assert!(after.total() <= before.total().max(budget.most), "{before:?} {after:?}");
        prop_assert!(after.serving() >= before.serving().min(budget.least), "{before:?} {after:?}");
        prop_assert!(after.wanted.desired <= budget.replicas.max(before.wanted.desired), "{after:?}");
    }

    #[test]
    fn every_exchange_ends_if_the_new_replicas_serve(
        budget in budget(), former in count(12), wanted in count(12),
    ) {
        let all = Count { desired: budget.replicas, serving: budget.replicas };
        let mut scene = Scene { former, wanted };
        // No step is in vain, so that an exchange takes at most a few for each replica.
        for _ in 0..100 {
            let next = scene.step(budget);
            let served = Count { serving: next.wanted.desired, ..next.wanted };
            scene = if next == scene { Scene { wanted: served, ..scene } } else { next };
        }
        prop_assert_eq!(scene.wanted, all);
    }

    #[test]
    fn a_new_child_that_never_serves_leaves_the_former_one_serving(budget in budget()) {
        let mut scene = Scene {
            former: Count { desired: budget.replicas, serving: budget.replicas },
            wanted: Count::default(),
        };
        for _ in 0..50 {
            let next = scene.step(budget);
            scene = Scene { wanted: Count { serving: 0, ..next.wanted }, ..next };
            prop_assert!(scene.former.serving >= budget.least && scene.total() <= budget.most, "{scene:?}");
        }
        prop_assert_eq!(scene.step(budget), scene, "it comes to rest");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Somebody has scaled the former child down, or its scaling was refused for a while.
    #[test]
    fn former_children_that_fell_below_the_budget_are_raised_again_beside_a_new_one_that_never_serves(
        budget in budget(), former in count(16), wanted in 0..16_i32,
    ) {
        let idle = |desired| Count { desired, serving: 0 };
        let mut scene = Scene { former, wanted: idle(wanted) };
        for _ in 0..50 {
            let next = scene.step(budget);
            let former = Count { serving: next.former.desired, ..next.former };
            scene = Scene { former, wanted: idle(next.wanted.desired) };
        }
        prop_assert!(scene.serving() >= budget.least && scene.total() <= budget.most, "{scene:?}");
    }
}

#[test]
fn a_new_child_leaves_the_room_of_a_former_one_that_somebody_scaled_down() {
    let mut observed = switched();
    observed.child = Found::Ours(child(json!({"spec": {"replicas": 1}, "status": {"active": 0}})));
    observed.others = vec![deployment_child(json!({"spec": {"replicas": 0}, "status": {"active": 0}}))];
    observed.given_replicas.insert("deployment-child".into(), 3);
    undone(&mut observed, Part::Replicas, "spec.replicas", 1, 1);
    Arc::make_mut(&mut observed.deployment).status = Some(status(&observed));
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(4)));
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
    let message = &conditions::find(&told.conditions, conditions::READY).unwrap().message;
    let named = "Deployment \"web\" is being deleted, and 2 of its replicas still serve";
    assert!(message.contains(named), "{message}");
    observed.others = vec![leaving(0)];
    assert_eq!(ready(&status(&observed)), (true, "Complete".into()));
}

#[test]
fn a_budget_never_forbids_every_exchange() {
    let zero = || IntOrString::Int(0);
    let spec =
        BasicDeploymentSpec { replicas: 3, max_surge: zero(), max_unavailable: zero(), ..Default::default() };
    assert_eq!(Budget::of(&spec), Budget { replicas: 3, most: 3, least: 2 });
    let shares = BasicDeploymentSpec { replicas: 10, ..Default::default() };
    assert_eq!(Budget::of(&shares), Budget { replicas: 10, most: 13, least: 8 });
}
