//! The steps that fail by themselves, and stop no other.

/// A child of an earlier name is scaled.
pub const SCALE_FORMER: &str = "scaleFormer";
/// The own status is written.
pub const STATUS: &str = "status";
/// The statuses of commands are written; an item is a command's uid.
pub const TELL: &str = "tell";
