//! The controllers of the chain, and their watches.

use catena_api::keys;

use super::content::Object;
use crate::server::object::Kind;

/// A controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// basic-deployment-controller.
    Deployments,
    /// command-binder.
    Binder,
    /// command-reaper.
    Reaper,
    /// backup-controller.
    Backups,
}

impl Controller {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Deployments, Self::Binder, Self::Reaper, Self::Backups];

    /// The watched kinds.
    #[must_use]
    pub fn watches(self) -> &'static [Kind] {
        match self {
            Self::Deployments => {
                &[Kind::Deployment, Kind::ReplicaSet, Kind::Workload, Kind::Revision, Kind::Restart]
            }
            Self::Binder | Self::Reaper => &[Kind::Restart],
            Self::Backups => &[Kind::Deployment],
        }
    }

    /// The kind that a pass is about.
    #[must_use]
    pub fn reconciles(self) -> Kind {
        self.watches()[0]
    }

    /// Whether its watch of a kind shows an object.
    #[must_use]
    pub fn is_shown(self, kind: Kind, object: &Object) -> bool {
        let is_narrowed = matches!(kind, Kind::ReplicaSet | Kind::Workload | Kind::Revision);
        object.meta.key.kind == kind
            && (!is_narrowed || object.meta.labels.contains_key(keys::DEPLOYMENT_UID))
    }
}
