/// One way to break the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cheat {
    /// It does not cheat.
    None,
    /// Surplus pods stay.
    NeverScalesDown,
    /// `observedGeneration` is that of its first pass.
    StaysAtTheFirstGeneration,
    /// `active` counts pods that do not serve.
    CountsStartingPods,
    /// It is ready while pods of an older restart token are left.
    IsReadyWithOldTokens,
    /// It is ready while its only pod has an older restart token.
    IsReadyWithItsOnlyOldToken,
    /// Pods of an older template stay; it says that it is not ready.
    KeepsOldTemplates,
    /// It is ready by pods of an older template.
    IsReadyWithOldTemplates,
    /// Old pods are deleted before new ones serve.
    ReplacesAllAtOnce,
    /// Pods of an older restart token stay; it says that it is not ready.
    KeepsOldTokens,
    /// It writes its status in each pass.
    KeepsWriting,
    /// Labels and annotations of others are removed.
    RemovesForeignFields,
    /// Its finalizer is never removed.
    NeverLetsGo,
    /// Its pods have no owner.
    DisownsItsPods,
}

impl Cheat {
    /// All of them, each with the requirement that it breaks.
    pub const ALL: [(Self, &'static str); 13] = [
        (Self::NeverScalesDown, "scaling"),
        (Self::StaysAtTheFirstGeneration, "observedGeneration"),
        (Self::CountsStartingPods, "active"),
        (Self::IsReadyWithOldTokens, "ready"),
        (Self::IsReadyWithItsOnlyOldToken, "ready"),
        (Self::KeepsOldTemplates, "replacement"),
        (Self::IsReadyWithOldTemplates, "badTemplate"),
        (Self::ReplacesAllAtOnce, "budget"),
        (Self::KeepsOldTokens, "restart"),
        (Self::KeepsWriting, "steadyState"),
        (Self::RemovesForeignFields, "foreignFields"),
        (Self::NeverLetsGo, "deletion"),
        (Self::DisownsItsPods, "deletion"),
    ];

    /// Its name, as in the spec of a child.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    /// The cheat of a child by its spec.
    pub(super) fn named(name: &str) -> Self {
        let all = Self::ALL.into_iter().map(|(cheat, _)| cheat);
        all.into_iter().find(|cheat| cheat.name() == name).unwrap_or(Self::None)
    }
}
