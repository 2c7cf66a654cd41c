//! The steps that fail by themselves: one that is held up stops no other.

/// Orphans are taken back.
pub const ADOPT: &str = "adopt";
/// Pods are created; an item is a place.
pub const CREATE: &str = "create";
/// Pods are deleted; an item is a pod's uid.
pub const DELETE: &str = "delete";
/// Pods that may be the set's own are looked up live.
pub const LOOK_UP: &str = "lookUp";
/// A pod of the set's own is marked as such.
pub const MARK: &str = "mark";
/// The status is written.
pub const STATUS: &str = "status";
