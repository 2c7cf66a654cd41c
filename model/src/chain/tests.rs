use clap::ValueEnum;

use super::{sabotage::Sabotage, scopes, walk::walk};
use crate::{
    check::{breaks, check},
    harness::Histories,
};

#[test]
fn every_rule_holds_in_every_history_of_each_controller() {
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

#[test]
fn every_rule_holds_in_random_histories_of_the_whole_chain() {
    let walked = walk(&Histories::new(scopes::whole()), 7, 50);
    assert!(walked.broken.is_none(), "{walked:#?}");
}
