//! The sizes of the model.

use catena_api::PodReplacementPolicy;

use super::{
    rule::Rule,
    sabotage::Sabotage,
    scope::{ONE, ReplicaSet, Scope},
};
use crate::{
    harness::{Budget, NONE},
    server::operation::Propagation,
};

pub fn edits() -> Scope {
    let own = ReplicaSet { replicas: 2, sizes: &[1, 3], ..ONE };
    Scope::new("edits and crashes", 8, Budget { edits: 1, crashes: 1, ..NONE }, own)
}

pub fn lost_answers() -> Scope {
    let own = ReplicaSet { replicas: 2, unavailable: 1, surge: 0, sizes: &[1], ..ONE };
    Scope::new("edits and lost answers", 8, Budget { edits: 1, lost_answers: 1, ..NONE }, own)
}

pub fn failures() -> Scope {
    Scope::new("pods that end", 8, Budget { failures: 1, ticks: 1, crashes: 1, edits: 1, ..NONE }, ONE)
}

/// The set is deleted, and created again.
pub fn deletion(name: &'static str, propagation: Propagation) -> Scope {
    Scope { propagation, ..Scope::new(name, 4, Budget { deletions: 1, ..NONE }, ONE) }
}

/// People delete pods, and remove their owners and labels.
pub fn meddling() -> Scope {
    Scope::new("people meddle with pods", 8, Budget { meddling: 1, ticks: 1, edits: 1, ..NONE }, ONE)
}

/// People remove labels while nobody changes the set.
pub fn lost_labels() -> Scope {
    let budget = Budget { meddling: 1, ticks: 1, crashes: 1, ..NONE };
    Scope::new("people take labels away", 8, budget, ReplicaSet { loses_labels: true, ..ONE })
}

/// Somebody else's pod has the name of the first one.
pub fn squatter() -> Scope {
    let own = ReplicaSet { has_squatter: true, ..ONE };
    Scope::new("a name is taken", 8, Budget { edits: 1, crashes: 1, ..NONE }, own)
}

/// The second template never serves, while people delete pods.
pub fn bad_template() -> Scope {
    let own = ReplicaSet { never_serves: "b", ..ONE };
    Scope::new("a template that never serves", 8, Budget { edits: 1, meddling: 1, crashes: 1, ..NONE }, own)
}

/// Pods have to be ready for a while before they serve.
pub fn slow_service() -> Scope {
    let own = ReplicaSet { min_ready: 1, ..ONE };
    Scope::new("minReadySeconds", 8, Budget { edits: 1, ticks: 2, ..NONE }, own)
}

/// A pod is created only when the one in whose place it comes is gone.
pub fn awaited_ends() -> Scope {
    let own = ReplicaSet { surge: 0, replacement: PodReplacementPolicy::TerminationComplete, ..ONE };
    Scope::new("TerminationComplete", 8, Budget { edits: 1, meddling: 1, ..NONE }, own)
}

/// Two processes act at once.
pub fn two_leaders() -> Scope {
    let own = ReplicaSet { processes: 2, judges_budget: false, ..ONE };
    Scope::new("two leaders", 8, Budget { edits: 1, ..NONE }, own)
}

pub fn two_quiet_leaders(replicas: u8) -> Scope {
    Scope::new("two leaders and no edits", 8, NONE, ReplicaSet { processes: 2, replicas, ..ONE })
}

/// Small models, which together take seconds.
pub fn small() -> Vec<Scope> {
    vec![
        edits(),
        lost_answers(),
        failures(),
        deletion("deleted and created again", Propagation::Background),
        deletion("orphaned and created again", Propagation::Orphan),
        deletion("deleted in the foreground", Propagation::Foreground),
        meddling(),
        lost_labels(),
        squatter(),
        bad_template(),
        slow_service(),
        awaited_ends(),
        two_quiet_leaders(1),
    ]
}

/// Larger models, which take minutes.
pub fn full() -> Vec<Scope> {
    let with = |mut scope: Scope, more: fn(&mut Budget)| {
        more(&mut scope.budget);
        scope
    };
    vec![
        with(edits(), |budget| budget.edits = 2),
        with(lost_answers(), |budget| budget.crashes = 1),
        with(failures(), |budget| budget.lost_answers = 1),
        with(deletion("deleted and created again", Propagation::Background), |budget| budget.crashes = 1),
        with(deletion("orphaned and created again", Propagation::Orphan), |budget| budget.ticks = 1),
        with(deletion("deleted in the foreground", Propagation::Foreground), |budget| budget.crashes = 1),
        with(meddling(), |budget| budget.crashes = 1),
        with(lost_labels(), |budget| budget.lost_answers = 1),
        with(squatter(), |budget| budget.lost_answers = 1),
        with(bad_template(), |budget| budget.lost_answers = 1),
        with(slow_service(), |budget| budget.crashes = 1),
        with(awaited_ends(), |budget| budget.crashes = 1),
        two_quiet_leaders(2),
    ]
}

/// A model in which a sabotage breaks a rule.
pub fn revealing(sabotage: Sabotage) -> (Scope, Rule) {
    let (scope, rule) = match sabotage {
        Sabotage::DeletesByName => {
            (Scope { budget: Budget { failures: 1, ticks: 1, ..NONE }, ..two_leaders() }, Rule::Meant)
        }
        Sabotage::NamesAtRandom => (two_quiet_leaders(1), Rule::Most),
        Sabotage::WaitsForNoWrite => (edits(), Rule::Once),
        Sabotage::ForgetsLostAnswers => (lost_answers(), Rule::Least),
        Sabotage::BelievesAnOldList => (edits(), Rule::Most),
        Sabotage::CountsTerminatingPods | Sabotage::ReplacesAllAtOnce => (edits(), Rule::Least),
        Sabotage::KnowsOwnersByName => (deletion("created again", Propagation::Background), Rule::Ready),
        Sabotage::AdoptsWithoutLook => (deletion("orphaned", Propagation::Orphan), Rule::Own),
        Sabotage::OverlooksDeletion => (deletion("in the foreground", Propagation::Foreground), Rule::Rest),
        Sabotage::ReadyByNumber => (edits(), Rule::Ready),
        Sabotage::RendersOnce => (edits(), Rule::Rest),
        Sabotage::TakesNamesForPods => (squatter(), Rule::Rest),
        Sabotage::WritesStatusAlways => (Scope::new("nothing happens", 8, NONE, ONE), Rule::Rest),
        Sabotage::NeverRetries => (lost_answers(), Rule::Rest),
        Sabotage::ForgetsWhatServed => (bad_template(), Rule::Rest),
        Sabotage::IgnoresMinReadySeconds => (slow_service(), Rule::Least),
        Sabotage::AwaitsNoEnd => (awaited_ends(), Rule::Most),
    };
    (scope.sabotaged(sabotage), rule)
}
