use clap::ValueEnum;

use super::{
    rule::Rule,
    sabotage::Sabotage,
    scope::{ONE, ReplicaSet, Scope},
    scopes,
};
use crate::{
    check::{breaks, check},
    harness::Histories,
};

#[test]
fn every_rule_holds_in_every_history() {
    for scope in scopes::small() {
        let checked = check(Histories::new(scope));
        assert!(checked.broken.is_empty(), "{}: {:#?}", checked.name, checked.broken);
    }
}

#[test]
fn each_sabotage_breaks_the_rule_that_is_there_for_it() {
    for sabotage in Sabotage::value_variants() {
        let (scope, rule) = scopes::revealing(*sabotage);
        let checked = breaks(Histories::new(scope), rule.sentence());
        assert!(checked.broken.contains_key(rule.sentence()), "{sabotage:?} is not caught: {checked:?}");
    }
}

/// The watch of pods is narrowed by the label, and the next pod may have another slot, and so another name.
#[test]
fn a_pod_that_loses_its_label_in_a_rollout_may_stay_beside_its_successor() {
    let scope = Scope { own: ReplicaSet { loses_labels: true, ..ONE }, ..scopes::meddling() };
    let checked = breaks(Histories::new(scope), Rule::Rest.sentence());
    assert!(checked.broken.contains_key(Rule::Rest.sentence()));
}

/// The bounds of a rollout rely on a single acting process; that nothing is lost or duplicated does not.
#[test]
fn two_leaders_at_once_may_exceed_the_budget_of_a_rollout() {
    for rule in [Rule::Most, Rule::Least] {
        let scope = scopes::two_leaders();
        let scope = Scope { own: ReplicaSet { judges_budget: true, ..scope.own }, ..scope };
        assert!(breaks(Histories::new(scope), rule.sentence()).broken.contains_key(rule.sentence()));
    }
}
