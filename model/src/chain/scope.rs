//! The size of a model of the chain: its controllers, its possible events, and their number.

use super::{controller::Controller, sabotage::Sabotage};
use crate::server::operation::Propagation;

/// The number of faults and changes of each kind in one history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// A user changes the replicas or the image.
    pub edits: u8,
    /// A user chooses the template of the other kind of children.
    pub switches: u8,
    /// A user deletes the `BasicDeployment`, and may create it again.
    pub deletions: u8,
    /// A user creates a restart.
    pub orders: u8,
    /// A user deletes a command, and a pipeline creates a missing one again.
    pub cancels: u8,
    /// A person writes what looks like a backup, deletes a backup, or releases a held object.
    pub meddling: u8,
    /// A backup fails.
    pub failures: u8,
    /// The server refuses a backup.
    pub refusals: u8,
    /// A process ends at any point, and starts again with an empty memory.
    pub crashes: u8,
    /// A write is not answered, but may have taken effect.
    pub lost_answers: u8,
    /// A process ends in the middle of a write, which arrives when the next process has already begun to act.
    pub late_writes: u8,
    /// Time passes.
    pub ticks: u8,
}

/// How commands are declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commands {
    /// Without a TTL.
    Kept,
    /// With a TTL.
    Expiring,
    /// With a TTL, and marked as declared elsewhere.
    Declared,
    /// With a TTL, by a pipeline that creates missing ones again, without an end.
    Repeated,
}

/// A model of the chain.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// The controllers that run. Without its controller, a command is bound when it is created, or finishes by itself.
    pub controllers: &'static [Controller],
    /// The propagation of the deletion.
    pub propagation: Propagation,
    /// Whether an object is released after some tries in vain.
    pub releases: bool,
    /// Whether an exchange of children may have additional replicas.
    pub surges: bool,
    /// How commands are declared.
    pub commands: Commands,
    /// Maximum number of objects: longer histories are not followed.
    pub objects: u8,
    /// The budget of events.
    pub budget: Budget,
    /// The defect of a controller.
    pub sabotage: Option<Sabotage>,
}

impl Scope {
    /// These controllers, without any events.
    #[must_use]
    pub fn quiet(name: &'static str, controllers: &'static [Controller]) -> Self {
        Self {
            name,
            controllers,
            propagation: Propagation::Background,
            releases: false,
            surges: true,
            commands: Commands::Kept,
            objects: 12,
            budget: Budget::default(),
            sabotage: None,
        }
    }

    /// The same, with a defect of a controller.
    #[must_use]
    pub fn sabotaged(mut self, sabotage: Sabotage) -> Self {
        self.sabotage = Some(sabotage);
        self
    }

    /// Whether a controller has this defect.
    #[must_use]
    pub fn has(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    /// Whether a controller runs.
    #[must_use]
    pub fn runs(&self, controller: Controller) -> bool {
        self.controllers.contains(&controller)
    }
}
