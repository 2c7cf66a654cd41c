//! What could be wrong with a controller. Each is caught by a rule; those that are not would show what the rules miss.

/// One thing that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sabotage {
    /// Pods are deleted by name, whatever their uid.
    DeletesByName,
    /// A pod's name follows from nothing.
    NamesAtRandom,
    /// It decides before its own writes have come back.
    WaitsForNoWrite,
    /// It decides again before its watch has passed a write whose answer was lost.
    ForgetsLostAnswers,
    /// A new process believes what the last one had seen.
    BelievesAnOldList,
    /// A pod that is going counts as one that serves.
    CountsTerminatingPods,
    /// Pods are the set's by the name of their owner.
    KnowsOwnersByName,
    /// A pod without an owner is taken back without another look.
    AdoptsWithoutLook,
    /// A set that is being deleted is filled like any other.
    OverlooksDeletion,
    /// A set is ready when its number of pods serves.
    ReadyByNumber,
    /// What a set's pods are made from is found out once.
    RendersOnce,
    /// Whoever has a pod's name is taken for the pod.
    TakesNamesForPods,
    /// A status is written in every pass.
    WritesStatusAlways,
    /// All old pods are deleted at once.
    ReplacesAllAtOnce,
    /// What failed is not tried again.
    NeverRetries,
}

impl Sabotage {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::DeletesByName,
        Self::NamesAtRandom,
        Self::WaitsForNoWrite,
        Self::ForgetsLostAnswers,
        Self::BelievesAnOldList,
        Self::CountsTerminatingPods,
        Self::KnowsOwnersByName,
        Self::AdoptsWithoutLook,
        Self::OverlooksDeletion,
        Self::ReadyByNumber,
        Self::RendersOnce,
        Self::TakesNamesForPods,
        Self::WritesStatusAlways,
        Self::ReplacesAllAtOnce,
        Self::NeverRetries,
    ];
}
