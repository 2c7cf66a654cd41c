//! The budget of an exchange, for all numbers.

use catena_api::BasicDeploymentSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use proptest::prelude::*;

use crate::budget::{Budget, Count};

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
    fn former_replicas_may_go_in_any_order_while_the_wanted_child_can_grow(
        budget in budget(), former in count(16), wanted in count(16),
    ) {
        let before = Scene { former, wanted };
        let may_grow = wanted.idle() > 0 || before.total() < budget.most || wanted.desired >= budget.replicas;
        if !may_grow || before.total() > budget.most {
            return Ok(());
        }
        let left = budget.of_former(former, Some(wanted));
        let lost = (former.desired - left).max(0);
        let serving = (former.serving - lost).max(0) + wanted.serving;
        prop_assert!(serving >= before.serving().min(budget.least), "{before:?} {left}");
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
fn a_budget_never_forbids_every_exchange() {
    let zero = || IntOrString::Int(0);
    let spec =
        BasicDeploymentSpec { replicas: 3, max_surge: zero(), max_unavailable: zero(), ..Default::default() };
    assert_eq!(Budget::of(&spec), Budget { replicas: 3, most: 3, least: 2 });
    let shares = BasicDeploymentSpec { replicas: 10, ..Default::default() };
    assert_eq!(Budget::of(&shares), Budget { replicas: 10, most: 13, least: 8 });
}
