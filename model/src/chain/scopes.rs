//! The sizes of the model of the chain.

use super::{
    controller::Controller::{self, Backups, Binder, Deployments, Reaper},
    rule::Rule,
    sabotage::Sabotage,
    scope::{Budget, Commands, Scope},
};
use crate::server::operation::Propagation;

const NONE: Budget = Budget {
    edits: 0,
    switches: 0,
    deletions: 0,
    orders: 0,
    cancels: 0,
    meddling: 0,
    failures: 0,
    refusals: 0,
    crashes: 0,
    lost_answers: 0,
    late_writes: 0,
    ticks: 0,
};

/// A restart is carried out.
#[must_use]
pub fn restart() -> Scope {
    Scope {
        budget: Budget { orders: 1, crashes: 1, ticks: 1, ..NONE },
        ..Scope::quiet("a restart, and crashes", &[Deployments])
    }
}

/// A restart is carried out, and answers are lost.
#[must_use]
pub fn restart_unanswered() -> Scope {
    Scope {
        budget: Budget { orders: 1, lost_answers: 1, cancels: 1, ..NONE },
        ..Scope::quiet("a restart, and lost answers", &[Deployments])
    }
}

/// A restart is carried out, and a write of the former leader arrives late.
#[must_use]
pub fn restart_late() -> Scope {
    Scope {
        objects: 4,
        budget: Budget { orders: 1, late_writes: 1, ..NONE },
        ..Scope::quiet("a restart, and a late write", &[Deployments])
    }
}

/// The spec changes.
#[must_use]
pub fn edits() -> Scope {
    Scope {
        budget: Budget { edits: 1, crashes: 1, lost_answers: 1, ..NONE },
        ..Scope::quiet("edits, crashes and lost answers", &[Deployments])
    }
}

/// The child is exchanged for one of another kind.
#[must_use]
pub fn exchange() -> Scope {
    Scope {
        objects: 6,
        budget: Budget { switches: 1, crashes: 1, ..NONE },
        ..Scope::quiet("a child of another kind", &[Deployments])
    }
}

/// The same without additional replicas, and with lost answers.
#[must_use]
pub fn exchange_in_place() -> Scope {
    Scope {
        surges: false,
        budget: Budget { switches: 1, lost_answers: 1, ..NONE },
        ..Scope { name: "another kind in its place", ..exchange() }
    }
}

/// The `BasicDeployment` is deleted, and created again.
#[must_use]
pub fn deletion(name: &'static str, propagation: Propagation) -> Scope {
    Scope {
        propagation,
        objects: 7,
        budget: Budget { deletions: 1, ..NONE },
        ..Scope::quiet(name, &[Deployments])
    }
}

/// Commands are bound.
#[must_use]
pub fn binding() -> Scope {
    Scope {
        propagation: Propagation::Foreground,
        objects: 5,
        budget: Budget { orders: 1, cancels: 1, deletions: 1, crashes: 1, lost_answers: 1, ..NONE },
        ..Scope::quiet("commands are bound", &[Binder])
    }
}

/// Finished commands are reaped.
#[must_use]
pub fn reaping() -> Scope {
    Scope {
        commands: Commands::Expiring,
        objects: 5,
        budget: Budget { orders: 2, cancels: 1, crashes: 1, lost_answers: 1, ticks: 2, ..NONE },
        ..Scope::quiet("commands are reaped", &[Reaper])
    }
}

/// A pipeline creates a command again whenever it is missing.
#[must_use]
pub fn pipeline() -> Scope {
    Scope {
        commands: Commands::Repeated,
        budget: Budget { orders: 2, crashes: 1, lost_answers: 1, ticks: 2, ..NONE },
        ..Scope::quiet("a pipeline repeats a command", &[Reaper])
    }
}

/// Commands are declared elsewhere.
#[must_use]
pub fn declared() -> Scope {
    Scope { commands: Commands::Declared, ..Scope { name: "declared commands", ..reaping() } }
}

/// An object is held until its backup.
#[must_use]
pub fn backup() -> Scope {
    Scope {
        objects: 6,
        budget: Budget { deletions: 1, failures: 1, crashes: 1, lost_answers: 1, ticks: 1, ..NONE },
        ..Scope::quiet("held until its backup", &[Backups])
    }
}

/// People forge and delete backups, and release objects.
#[must_use]
pub fn meddling() -> Scope {
    Scope {
        objects: 6,
        budget: Budget { deletions: 1, meddling: 2, ticks: 2, failures: 1, ..NONE },
        ..Scope::quiet("people meddle with backups", &[Backups])
    }
}

/// An object is released after some tries in vain.
#[must_use]
pub fn releasing() -> Scope {
    Scope {
        releases: true,
        objects: 6,
        budget: Budget { deletions: 1, failures: 2, refusals: 2, crashes: 1, ticks: 3, ..NONE },
        ..Scope::quiet("released after tries in vain", &[Backups])
    }
}

/// All controllers at once, for random histories.
#[must_use]
pub fn whole() -> Scope {
    Scope {
        commands: Commands::Expiring,
        objects: 40,
        budget: Budget {
            edits: 3,
            switches: 2,
            deletions: 2,
            orders: 4,
            cancels: 2,
            meddling: 2,
            failures: 2,
            refusals: 0,
            crashes: 3,
            lost_answers: 3,
            late_writes: 2,
            ticks: 6,
        },
        ..Scope::quiet("the whole chain", Controller::ALL)
    }
}

/// Small models, which together take seconds.
#[must_use]
pub fn small() -> Vec<Scope> {
    vec![
        restart(),
        restart_unanswered(),
        restart_late(),
        edits(),
        exchange(),
        deletion("created again", Propagation::Background),
        deletion("orphaned, and created again", Propagation::Orphan),
        deletion("created again after its child", Propagation::Foreground),
        binding(),
        reaping(),
        pipeline(),
        declared(),
        backup(),
        meddling(),
        releasing(),
    ]
}

/// Larger models, which take minutes.
#[must_use]
pub fn full() -> Vec<Scope> {
    vec![
        with(restart(), |budget| budget.orders = 2),
        with(restart_unanswered(), |budget| budget.crashes = 1),
        with(edits(), |budget| budget.crashes = 2),
        with(exchange(), |budget| budget.lost_answers = 1),
        exchange_in_place(),
        with(restart_late(), |budget| budget.ticks = 1),
        with(binding(), |budget| budget.orders = 2),
        with(reaping(), |budget| budget.crashes = 2),
        with(backup(), |budget| budget.meddling = 1),
        with(meddling(), |budget| budget.crashes = 1),
        with(releasing(), |budget| budget.lost_answers = 1),
    ]
}

fn with(mut scope: Scope, change: fn(&mut Budget)) -> Scope {
    change(&mut scope.budget);
    scope
}

/// The models in which a sabotage breaks a rule.
#[must_use]
pub fn revealing(sabotage: Sabotage) -> Vec<(Scope, Rule)> {
    let more = match sabotage {
        Sabotage::BelievesOldReports => Some((restart(), Rule::Complete)),
        _ => None,
    };
    let one = match sabotage {
        Sabotage::RestartsByTheClock => (with(restart_late(), |budget| budget.ticks = 1), Rule::Once),
        Sabotage::TrustsItsCacheOfCommands => (restart_unanswered(), Rule::Waiting),
        Sabotage::BelievesOldReports => (edits(), Rule::Ready),
        Sabotage::AdoptsForTheDead => (deletion("orphaned", Propagation::Orphan), Rule::Own),
        Sabotage::BindsToTheDying => (binding(), Rule::Bound),
        Sabotage::BindsByName => (with(binding(), |budget| budget.orders = 2), Rule::Meant),
        Sabotage::ReapsByName => (reaping(), Rule::Meant),
        Sabotage::ReapsDeclared => (declared(), Rule::Reaped),
        Sabotage::OverlooksKept => (pipeline(), Rule::Reaped),
        Sabotage::ForgetsDeletions => (pipeline(), Rule::Rest),
        Sabotage::BelievesAnyBackup => (meddling(), Rule::Proven),
        Sabotage::TakesAnEndForSuccess => (backup(), Rule::Proven),
        Sabotage::ProtectsNothing => (backup(), Rule::Rest),
        Sabotage::StartsAllAtOnce | Sabotage::EndsTheFormerFirst => (exchange(), Rule::Budget),
        Sabotage::NeverRetries => (edits(), Rule::Rest),
    };
    let sabotaged = |(scope, rule): (Scope, Rule)| (scope.sabotaged(sabotage), rule);
    more.into_iter().chain([one]).map(sabotaged).collect()
}
