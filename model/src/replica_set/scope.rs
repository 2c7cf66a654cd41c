//! The size of a model: its possible events, and their number.

use crate::server::operation::Propagation;

use super::{content::SetSpec, sabotage::Sabotage};

/// The number of faults and changes of each kind in one history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// A user sets another number of replicas, or another template.
    pub edits: u8,
    /// A user deletes the set, and may create it again.
    pub deletions: u8,
    /// A user deletes a pod, or removes its owner or its label.
    pub meddling: u8,
    /// A pod ends by itself, or stops serving.
    pub failures: u8,
    /// A process ends at any point, and starts again with an empty memory.
    pub crashes: u8,
    /// A write is not answered, but may have taken effect.
    pub lost_answers: u8,
    /// Time passes.
    pub ticks: u8,
}

/// A model.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Number of processes that act independently.
    pub processes: u8,
    /// Initial number of replicas.
    pub replicas: u8,
    /// Numbers of replicas that a user may choose.
    pub sizes: &'static [u8],
    /// `spec.maxSurge`.
    pub surge: u8,
    /// `spec.maxUnavailable`.
    pub unavailable: u8,
    /// The propagation of the set's deletion.
    pub propagation: Propagation,
    /// Whether somebody else's pod has the name of the first one.
    pub has_squatter: bool,
    /// Whether the bounds of a rollout are judged: they do not hold with two acting processes.
    pub judges_budget: bool,
    /// Whether people remove labels, so that watches no longer show a pod.
    pub loses_labels: bool,
    /// Maximum number of objects: longer histories are not followed.
    pub objects: u8,
    /// The budget of events.
    pub budget: Budget,
    /// The defect of the controller.
    pub sabotage: Option<Sabotage>,
}

impl Scope {
    /// One process over a set of one replica, without any events.
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

    /// The same, with a defect of the controller.
    #[must_use]
    pub fn sabotaged(mut self, sabotage: Sabotage) -> Self {
        self.sabotage = Some(sabotage);
        self
    }

    /// The initial spec of the set.
    #[must_use]
    pub fn spec(&self) -> SetSpec {
        let Self { replicas, surge, unavailable, .. } = *self;
        SetSpec { replicas, text: "a".into(), surge, unavailable }
    }

    /// Whether the controller has this defect.
    #[must_use]
    pub fn has(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }
}
