//! Possible defects of the controllers of the chain. Each is caught by a rule; one that is not would show a gap in the
//! rules.

use clap::ValueEnum;

/// One defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Sabotage {
    /// The token of a restart is the present time, in a write that relies on nothing that was seen.
    RestartsByTheClock,
    /// Whether a command still waits is not read live.
    TrustsItsCacheOfCommands,
    /// A command runs whatever others its target has.
    TakesNoTurns,
    /// The newest command of a target runs first.
    TakesTheNewestFirst,
    /// The patch of the target does not record that the command ran.
    ProvesNothing,
    /// A command runs again if its target has no record of it, although its status says that it ran.
    RepeatsWhatHasStarted,
    /// A command that ran before an older one was bound is not looked at.
    OverlooksUnreported,
    /// A report on a command relies on nothing that was seen.
    ReportsBlindly,
    /// The previous revision is the one before the newest when the rollback runs, not when it was created.
    RollsBackFromTheNewest,
    /// A rollback runs although the target has not yet reported on its present spec.
    RollsBackByOldStatuses,
    /// A status of the target counts whatever generation it is about.
    BelievesOldStatuses,
    /// A child's report counts whatever generation it is about.
    BelievesOldReports,
    /// The restart token is not handed to the child.
    HandsNoToken,
    /// An orphan is adopted without a look whether the owner still exists.
    AdoptsForTheDead,
    /// A target that is being deleted counts as one that lives.
    BindsToTheDying,
    /// A command is bound by its name, whatever its uid.
    BindsByName,
    /// A command is deleted by its name, whatever its uid.
    ReapsByName,
    /// The mark of a declared command is overlooked.
    ReapsDeclared,
    /// The record that a command is kept is overlooked.
    OverlooksKept,
    /// A command that comes back is deleted again.
    ForgetsDeletions,
    /// Any object with the name of a backup counts as one.
    BelievesAnyBackup,
    /// A failed backup counts as one that succeeded.
    TakesAnEndForSuccess,
    /// No finalizer is added.
    ProtectsNothing,
    /// A new child is created with all replicas, whatever room there is beside the former one.
    StartsAllAtOnce,
    /// A former child is scaled to nothing at once.
    EndsTheFormerFirst,
    /// A failure is never retried.
    NeverRetries,
}
