//! The sizes of the model of the chain.

use super::{
    controllers::Controller::{self, Backups, Binder, Deployments, Reaper, Runner},
    rule::Rule,
    sabotage::Sabotage,
    scope::{Chain, Commands, Scope},
};
use crate::{
    harness::{Budget, NONE},
    server::operation::Propagation,
};

const DEPLOYMENTS: Chain = Chain::of(&[Deployments]);
const RESTARTS: Chain = Chain::of(&[Runner]);

pub fn restart() -> Scope {
    let budget = Budget { orders: 1, crashes: 1, ticks: 1, ..NONE };
    Scope::new("a restart, and crashes", 12, budget, RESTARTS)
}

pub fn restart_unanswered() -> Scope {
    let budget = Budget { orders: 1, lost_answers: 1, cancels: 1, ..NONE };
    Scope::new("a restart, and lost answers", 12, budget, RESTARTS)
}

/// A write of the former leader arrives late.
pub fn restart_late() -> Scope {
    let budget = Budget { orders: 1, late_writes: 1, ..NONE };
    Scope::new("a restart, and a late write", 4, budget, RESTARTS)
}

/// Two restarts are bound in any order, also between the patch and the report of the other one.
pub fn restarts_bound_late() -> Scope {
    let own = Chain { binds_late: true, ..RESTARTS };
    Scope::new("two restarts, bound in any order", 4, Budget { orders: 2, ..NONE }, own)
}

/// A restart goes down to the child.
pub fn restart_of_child() -> Scope {
    let own = Chain::of(&[Deployments, Runner]);
    Scope::new("a restart of the child", 6, Budget { orders: 1, ..NONE }, own)
}

pub fn rollback() -> Scope {
    let budget = Budget { rollbacks: 1, edits: 2, ticks: 1, ..NONE };
    Scope::new("a rollback, and edits", 4, budget, RESTARTS)
}

/// One of the two records that it has run is lost.
pub fn rollback_unrecorded() -> Scope {
    let budget = Budget { rollbacks: 1, edits: 1, wipes: 1, crashes: 1, ticks: 1, ..NONE };
    Scope::new("a rollback, and lost records", 4, budget, RESTARTS)
}

pub fn edits() -> Scope {
    let budget = Budget { edits: 1, crashes: 1, lost_answers: 1, ..NONE };
    Scope::new("edits, crashes and lost answers", 12, budget, DEPLOYMENTS)
}

/// The child is exchanged for one of another kind.
pub fn exchange() -> Scope {
    Scope::new("a child of another kind", 6, Budget { switches: 1, crashes: 1, ..NONE }, DEPLOYMENTS)
}

/// The same without additional replicas, and with lost answers.
pub fn exchange_in_place() -> Scope {
    let own = Chain { surges: false, ..DEPLOYMENTS };
    Scope::new("another kind in its place", 6, Budget { switches: 1, lost_answers: 1, ..NONE }, own)
}

/// The `BasicDeployment` is deleted, and created again.
pub fn deletion(name: &'static str, propagation: Propagation) -> Scope {
    Scope { propagation, ..Scope::new(name, 7, Budget { deletions: 1, ..NONE }, DEPLOYMENTS) }
}

pub fn binding() -> Scope {
    let budget = Budget { orders: 1, cancels: 1, deletions: 1, crashes: 1, lost_answers: 1, ..NONE };
    let scope = Scope::new("commands are bound", 5, budget, Chain::of(&[Binder]));
    Scope { propagation: Propagation::Foreground, ..scope }
}

pub fn reaping() -> Scope {
    let own = Chain { commands: Commands::Expiring, ..Chain::of(&[Reaper]) };
    let budget = Budget { orders: 2, cancels: 1, crashes: 1, lost_answers: 1, ticks: 2, ..NONE };
    Scope::new("commands are reaped", 5, budget, own)
}

/// A pipeline creates a command again whenever it is missing.
pub fn pipeline() -> Scope {
    let own = Chain { commands: Commands::Repeated, ..Chain::of(&[Reaper]) };
    let budget = Budget { orders: 2, crashes: 1, lost_answers: 1, ticks: 2, ..NONE };
    Scope::new("a pipeline repeats a command", 12, budget, own)
}

/// Commands are declared elsewhere.
pub fn declared() -> Scope {
    let own = Chain { commands: Commands::Declared, ..Chain::of(&[Reaper]) };
    Scope { name: "declared commands", own, ..reaping() }
}

pub fn backup() -> Scope {
    let budget = Budget { deletions: 1, failures: 1, crashes: 1, lost_answers: 1, ticks: 1, ..NONE };
    Scope::new("held until its backup", 6, budget, Chain::of(&[Backups]))
}

/// People forge and delete backups, and release objects.
pub fn meddling() -> Scope {
    let budget = Budget { deletions: 1, meddling: 2, ticks: 2, failures: 1, ..NONE };
    Scope::new("people meddle with backups", 6, budget, Chain::of(&[Backups]))
}

pub fn releasing() -> Scope {
    let own = Chain { releases: true, ..Chain::of(&[Backups]) };
    let budget = Budget { deletions: 1, failures: 2, refusals: 2, crashes: 1, ticks: 3, ..NONE };
    Scope::new("released after tries in vain", 6, budget, own)
}

/// All controllers at once, for random histories.
pub fn whole() -> Scope {
    let budget = Budget {
        edits: 3,
        switches: 2,
        deletions: 2,
        orders: 4,
        rollbacks: 2,
        wipes: 1,
        cancels: 2,
        meddling: 2,
        failures: 2,
        refusals: 0,
        crashes: 3,
        lost_answers: 3,
        late_writes: 2,
        ticks: 6,
    };
    let own = Chain { commands: Commands::Expiring, ..Chain::of(Controller::ALL) };
    Scope::new("the whole chain", 40, budget, own)
}

/// Small models, which together take seconds.
pub fn small() -> Vec<Scope> {
    vec![
        restart(),
        restart_unanswered(),
        restart_late(),
        restarts_bound_late(),
        restart_of_child(),
        rollback(),
        rollback_unrecorded(),
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
pub fn full() -> Vec<Scope> {
    vec![
        with(restart(), |budget| budget.orders = 2),
        with(restart_unanswered(), |budget| budget.crashes = 1),
        with(rollback(), |budget| budget.crashes = 1),
        with(restarts_bound_late(), |budget| budget.crashes = 1),
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

/// The model in which a sabotage breaks a rule.
pub fn revealing(sabotage: Sabotage) -> (Scope, Rule) {
    let (scope, rule) = match sabotage {
        Sabotage::RestartsByTheClock => (with(restart_late(), |budget| budget.ticks = 1), Rule::Once),
        Sabotage::TrustsItsCacheOfCommands => (restart_unanswered(), Rule::Waiting),
        Sabotage::TakesNoTurns => (with(restart(), |budget| budget.orders = 2), Rule::Alone),
        Sabotage::TakesTheNewestFirst => (with(restart(), |budget| budget.orders = 2), Rule::Order),
        Sabotage::ProvesNothing => (rollback(), Rule::Once),
        Sabotage::RepeatsWhatHasStarted => (rollback_unrecorded(), Rule::Once),
        Sabotage::RollsBackFromTheNewest | Sabotage::RollsBackByOldStatuses => (rollback(), Rule::Seen),
        Sabotage::OverlooksUnreported => (restarts_bound_late(), Rule::Rest),
        Sabotage::ReportsBlindly => (restart_late(), Rule::Final),
        Sabotage::HandsNoToken => (restart_of_child(), Rule::Complete),
        Sabotage::BelievesOldStatuses => (restart(), Rule::Complete),
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
    (scope.sabotaged(sabotage), rule)
}
