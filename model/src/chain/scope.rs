//! The parameters of the model of the chain.

use super::controllers::Controller;
use crate::harness;

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
pub struct Chain {
    /// The controllers that run. Without its controller, a command is bound when it is created, or finishes by itself.
    pub controllers: &'static [Controller],
    /// Whether an object is released after some tries in vain.
    pub releases: bool,
    /// Whether an exchange of children may have additional replicas.
    pub surges: bool,
    pub commands: Commands,
    /// Whether commands are bound some time after they are created, by a controller that is not modelled.
    pub binds_late: bool,
}

pub type Scope = harness::Scope<Chain>;

impl Chain {
    pub const fn of(controllers: &'static [Controller]) -> Self {
        Self { controllers, releases: false, surges: true, commands: Commands::Kept, binds_late: false }
    }

    /// Whether a controller runs.
    pub fn runs(&self, controller: Controller) -> bool {
        self.controllers.contains(&controller)
    }
}
