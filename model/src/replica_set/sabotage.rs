//! Possible defects of a controller. Each is caught by a rule; one that is not would show a gap in the rules.

use clap::ValueEnum;

/// One defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Sabotage {
    /// Pods are deleted by name, whatever their uid.
    DeletesByName,
    /// Names of pods are random.
    NamesAtRandom,
    /// It decides before its watches show its own writes.
    WaitsForNoWrite,
    /// It decides again before its watch has passed a write whose answer was lost.
    ForgetsLostAnswers,
    /// A new process relies on the cache of the previous one.
    BelievesAnOldList,
    /// A terminating pod counts as serving.
    CountsTerminatingPods,
    /// Pods belong to the set by the name of their owner.
    KnowsOwnersByName,
    /// A pod without an owner is adopted without a live look-up.
    AdoptsWithoutLook,
    /// A terminating set gets new pods.
    OverlooksDeletion,
    /// A set is ready once its number of pods serves.
    ReadyByNumber,
    /// The template of a set is rendered only once.
    RendersOnce,
    /// Any object with a pod's name is taken for the pod.
    TakesNamesForPods,
    /// A status is written in every pass.
    WritesStatusAlways,
    /// All old pods are deleted at once.
    ReplacesAllAtOnce,
    /// A failure is never retried.
    NeverRetries,
    /// Lost pods of a stuck rollout are made from the new template alone.
    ForgetsWhatServed,
    /// A pod serves as soon as it is ready.
    IgnoresMinReadySeconds,
    /// A pod is created beside one whose end is awaited.
    AwaitsNoEnd,
}
