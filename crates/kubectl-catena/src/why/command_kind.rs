//! Which objects are commands.

use catena_api::{command::BOUND, keys};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::reasons::describe;
use crate::{
    chain::{Node, State},
    object::{self, conditions},
};

/// The controller that binds commands.
pub const BINDER: &str = "command-binder";

/// Whether an object is a command: one of ours, or one that command-binder has reported on. A `targetRef` alone is no
/// evidence, because a `VerticalPodAutoscaler` has one, too; and other controllers bind things as well.
pub fn is_command(node: &Node) -> bool {
    let is_ours =
        node.identity.group() == keys::GROUP && object::text(&node.object, "/spec/targetRef/name").is_some();
    let is_of_binder = |condition: &Condition| {
        condition.type_ == BOUND && (condition.reason == BOUND || describe(&condition.reason).is_some())
    };
    let mut writers = node.object.metadata.managed_fields.iter().flatten().peekable();
    let may_be_of_binder =
        writers.peek().is_none() || writers.any(|entry| entry.manager.as_deref() == Some(BINDER));
    is_ours || may_be_of_binder && conditions(&node.object).iter().any(is_of_binder)
}

/// Whether an object is a command that is not finished.
pub fn is_waiting(node: &Node) -> bool {
    is_command(node) && !has_ended(node)
}

/// Whether an object reports its end.
pub fn has_ended(node: &Node) -> bool {
    matches!(node.health.state, State::Done | State::Failed)
}
