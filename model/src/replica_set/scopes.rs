//! The sizes of the model.

use super::{
    rule::Rule,
    sabotage::Sabotage,
    scope::{Budget, Scope},
};
use crate::server::operation::Propagation;

const NONE: Budget =
    Budget { edits: 0, deletions: 0, meddling: 0, failures: 0, crashes: 0, lost_answers: 0, ticks: 0 };

/// A template or a size changes, and processes crash.
#[must_use]
pub fn edits() -> Scope {
    Scope {
        replicas: 2,
        budget: Budget { edits: 1, crashes: 1, ..NONE },
        sizes: &[1, 3],
        ..Scope::quiet("edits and crashes")
    }
}

/// Answers are lost.
#[must_use]
pub fn lost_answers() -> Scope {
    Scope {
        replicas: 2,
        unavailable: 1,
        surge: 0,
        budget: Budget { edits: 1, lost_answers: 1, ..NONE },
        sizes: &[1],
        ..Scope::quiet("edits and lost answers")
    }
}

/// Pods end by themselves.
#[must_use]
pub fn failures() -> Scope {
    Scope {
        budget: Budget { failures: 1, ticks: 1, crashes: 1, edits: 1, ..NONE },
        ..Scope::quiet("pods that end")
    }
}

/// The set is deleted, and created again.
#[must_use]
pub fn deletion(name: &'static str, propagation: Propagation) -> Scope {
    Scope { propagation, objects: 4, budget: Budget { deletions: 1, ..NONE }, ..Scope::quiet(name) }
}

/// People delete pods, and remove their owners and labels.
#[must_use]
pub fn meddling() -> Scope {
    Scope {
        budget: Budget { meddling: 1, ticks: 1, edits: 1, ..NONE },
        ..Scope::quiet("people meddle with pods")
    }
}

/// People remove labels while nobody changes the set.
#[must_use]
pub fn lost_labels() -> Scope {
    Scope {
        loses_labels: true,
        budget: Budget { meddling: 1, ticks: 1, crashes: 1, ..NONE },
        ..Scope::quiet("people take labels away")
    }
}

/// Somebody else's pod has the name of the first one.
#[must_use]
pub fn squatter() -> Scope {
    Scope {
        has_squatter: true,
        budget: Budget { edits: 1, crashes: 1, ..NONE },
        ..Scope::quiet("a name is taken")
    }
}

/// Two processes act at once.
#[must_use]
pub fn two_leaders() -> Scope {
    Scope {
        processes: 2,
        judges_budget: false,
        budget: Budget { edits: 1, ..NONE },
        ..Scope::quiet("two leaders")
    }
}

/// Two processes act at once, without any edits.
#[must_use]
pub fn two_quiet_leaders() -> Scope {
    Scope { processes: 2, ..Scope::quiet("two leaders and no edits") }
}

/// Small models, which together take seconds.
#[must_use]
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
        two_quiet_leaders(),
    ]
}

/// Larger models, which take minutes.
#[must_use]
pub fn full() -> Vec<Scope> {
    let with = |scope: Scope, more: fn(&mut Budget)| {
        let mut scope = scope;
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
        Scope { replicas: 2, ..two_quiet_leaders() },
    ]
}

/// A model in which a sabotage breaks a rule.
#[must_use]
pub fn revealing(sabotage: Sabotage) -> (Scope, Rule) {
    let (scope, rule) = match sabotage {
        Sabotage::DeletesByName => (failures_of_two_leaders(), Rule::Meant),
        Sabotage::NamesAtRandom => (two_quiet_leaders(), Rule::Most),
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
        Sabotage::WritesStatusAlways => (Scope::quiet("nothing happens"), Rule::Rest),
        Sabotage::NeverRetries => (lost_answers(), Rule::Rest),
    };
    (scope.sabotaged(sabotage), rule)
}

fn failures_of_two_leaders() -> Scope {
    Scope { budget: Budget { failures: 1, ticks: 1, ..NONE }, ..two_leaders() }
}
