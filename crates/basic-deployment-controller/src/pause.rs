//! A pause in which somebody changed the child, as an earlier process has reported it. Pure.
//!
//! Only a process that has seen the child in order knows how the server stores the rendering. Without this, a new leader would
//! call the changed child ready.

use catena_api::BasicDeployment;
use operator_kit::report::conditions::{READY, find};

use crate::child::Child;

/// The reason of the report.
pub const PAUSED: &str = "Paused";

/// The end of its message, which distinguishes it from the report about a rendering that waits for the end of the pause.
pub const NOT_UNDONE: &str = "of the child is not undone";

/// Whether an earlier process has reported that a pause keeps a change from being undone, about the very generation, child and
/// rendering that are observed now.
#[must_use]
pub fn is_reported(deployment: &BasicDeployment, child: &Child) -> bool {
    let Some(status) = &deployment.status else { return false };
    find(&status.conditions, READY).is_some_and(|condition| {
        condition.status == "False" && condition.reason == PAUSED && condition.message.ends_with(NOT_UNDONE)
    }) && child.is_reported_by(deployment)
}
