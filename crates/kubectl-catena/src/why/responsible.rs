//! The controller that is responsible for an object.

use catena_api::keys;

use super::{answer::Cause, controllers::Down};
use crate::object::Identity;

/// The reason when no controller is running.
pub const NOT_RUNNING: &str = "ControllerNotRunning";

/// The controller of a kind, if it is one of ours.
pub fn controller_of(identity: &Identity) -> Option<&'static str> {
    if identity.group() != keys::GROUP {
        return None;
    }
    match identity.kind.as_str() {
        "BasicReplicaSet" => Some("basic-replicaset-controller"),
        kind if kind.starts_with("BasicDeployment") => Some("basic-deployment-controller"),
        _ => None,
    }
}

/// The responsible controller is not running. Since when is unknown: the object may have waited for something else
/// before.
pub fn not_running(object: &Identity, controller: &str, down: &Down) -> Cause {
    Cause::with(object, NOT_RUNNING).meaning(format!("is not reconciled, because {}", down.told(controller)))
}
