//! How large a model is: what may happen, and how often.

use crate::server::operation::Propagation;

use super::{content::SetSpec, sabotage::Sabotage};

/// What may go wrong or change, each so often in one history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// A user sets another number of replicas, or another template.
    pub edits: u8,
    /// A user deletes the set, and may create it again.
    pub deletions: u8,
    /// A user deletes a pod, takes away its owner or its label.
    pub meddling: u8,
    /// A pod ends by itself, or serves no more.
    pub failures: u8,
    /// A process ends at any point and begins anew, with nothing in its memory.
    pub crashes: u8,
    /// A write is not answered; it may have been made nevertheless.
    pub lost_answers: u8,
    /// Time passes.
    pub ticks: u8,
}

/// A model.
#[derive(Clone, Debug)]
pub struct Scope {
    /// What it is called.
    pub name: &'static str,
    /// Processes that act, each for itself.
    pub processes: u8,
    /// Replicas at first.
    pub replicas: u8,
    /// Replicas that a user may ask for.
    pub sizes: &'static [u8],
    /// `spec.maxSurge`.
    pub surge: u8,
    /// `spec.maxUnavailable`.
    pub unavailable: u8,
    /// How the set is deleted.
    pub propagation: Propagation,
    /// Whether another's pod has the name of the first one.
    pub has_squatter: bool,
    /// Whether the bounds of a rollout are judged: with two processes that act they do not hold.
    pub judges_budget: bool,
    /// Whether people take labels away, so that watches show a pod no more.
    pub loses_labels: bool,
    /// Objects that a history may have: longer ones are not followed.
    pub objects: u8,
    /// What may happen.
    pub budget: Budget,
    /// What is wrong with the controller.
    pub sabotage: Option<Sabotage>,
}

impl Scope {
    /// One process over a set of one replica, and nothing that happens.
    #[must_use]
    pub fn quiet(name: &'static str) -> Self {
        Self {
            name,
            processes: 1,
            replicas: 1,
            sizes: &[],
            surge: 1,
            unavailable: 0,
            propagation: Propagation::Background,
            has_squatter: false,
            judges_budget: true,
            loses_labels: false,
            objects: 8,
            budget: Budget::default(),
            sabotage: None,
        }
    }

    /// The same, with a controller that does something wrong.
    #[must_use]
    pub fn sabotaged(mut self, sabotage: Sabotage) -> Self {
        self.sabotage = Some(sabotage);
        self
    }

    /// The spec of the set at first.
    #[must_use]
    pub fn spec(&self) -> SetSpec {
        let Self { replicas, surge, unavailable, .. } = *self;
        SetSpec { replicas, text: "a".into(), surge, unavailable }
    }

    /// Whether the controller does this wrong.
    #[must_use]
    pub fn has(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }
}
