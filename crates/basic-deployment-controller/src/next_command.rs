//! The obstacles of the next command that its live reads show. Pure.

use std::sync::Arc;

use crate::{
    child::Child,
    error::Refusal,
    observed::{Found, Observed},
};

impl Observed {
    /// The child that has to be gone before the next command can be carried out, because the command would be lost with it,
    /// while the wanted one is leaving too.
    #[must_use]
    pub fn leaving_target(&self) -> Option<&Arc<Child>> {
        let is_wanted_leaving = match &self.child {
            Found::Ours(child) => child.is_deleting,
            Found::Leaving(_) => true,
            Found::Nothing | Found::Orphan(_) | Found::Foreign(_) => false,
        };
        let (_, found) = self.prepared.as_ref()?.target.as_ref()?;
        found.ours().filter(|child| is_wanted_leaving && child.is_deleting)
    }

    /// The present child, if the next command returns to another one while the template cannot be rendered: an exchange needs a
    /// wanted child, and without a rendering it is the present one.
    #[must_use]
    pub fn kept_child(&self) -> Option<&Arc<Child>> {
        let (_, found) = self.prepared.as_ref()?.target.as_ref()?;
        self.desired.as_ref().err()?;
        self.child.ours().filter(|child| found.ours().is_none_or(|target| target.uid != child.uid))
    }

    /// Whether the next command has to wait, or can never be carried out, because of its target.
    #[must_use]
    pub fn is_next_blocked(&self) -> bool {
        self.refused_target().is_some()
            || self.leaving_target().is_some()
            || self.kept_child().is_some()
            || self.is_taken_back()
    }

    /// Whether the next command is a restart that had begun, and whose token somebody took back, as `kubectl rollout undo` does:
    /// the older replicas are wanted, and are not to be restarted a second time.
    #[must_use]
    pub fn is_taken_back(&self) -> bool {
        self.prepared.as_ref().is_some_and(|prepared| prepared.is_taken_back)
    }

    /// The reason why the next command can never be carried out, if the live reads gave one.
    #[must_use]
    pub fn refused_target(&self) -> Option<Refusal> {
        let (desired, found) = self.prepared.as_ref()?.target.as_ref()?;
        match found {
            Found::Nothing => None,
            // Nothing is written to a child that breaks the contract, and commands behind this one may lead elsewhere.
            Found::Ours(child) => self.breach_of(child),
            Found::Orphan(child) if child.is_adoptable_as(&desired.hash) => None,
            Found::Orphan(child) | Found::Leaving(child) | Found::Foreign(child) => Some(child.refused()),
        }
    }
}
