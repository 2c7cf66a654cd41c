//! The steps that fail by themselves: one that is held up stops no other.

use super::Action;

/// Orphans are taken back.
pub const ADOPT: &str = "adopt";
/// Pods are created; an item is a place.
pub const CREATE: &str = "create";
/// Pods are deleted; an item is a pod's uid.
pub const DELETE: &str = "delete";
/// The status is written.
pub const STATUS: &str = "status";

impl Action {
    /// The step that it is, if it can fail.
    pub fn step(&self) -> &'static str {
        match self {
            Self::Adopt(_) => ADOPT,
            Self::Create { .. } | Self::Refuse(_) => CREATE,
            Self::Delete(_) => DELETE,
            Self::WriteStatus(_) => STATUS,
            Self::Wait(_) | Self::Settle => "",
        }
    }
}
