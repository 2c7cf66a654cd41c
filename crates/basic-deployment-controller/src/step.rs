//! The steps whose failures do not hold up others.

/// Refreshing the version in the owner references of children and revisions.
pub const REFRESH_OWNER: &str = "refreshOwner";
/// Scaling a former child, and handing fields to it.
pub const SCALE_FORMER: &str = "scaleFormer";
/// Undoing changes of a former child's replicas, and of fields that are handed to it, by others.
pub const HEAL_FORMER: &str = "healFormer";
/// Reading the outputs of the wanted child.
pub const READ_CHILD: &str = "readChild";
/// Bringing the child to the rendering of spec and template.
pub const FOLLOW: &str = "follow";
/// Undoing changes of the owner and of rendered fields of the wanted child by others.
pub const HEAL: &str = "heal";
/// Taking away keys that others have added to the wanted child.
pub const STRIP: &str = "strip";
/// Undoing changes of the wanted child's replicas, and of fields that are handed to it, by others.
pub const HEAL_SCALE: &str = "healScale";
/// Scaling the wanted child.
pub const SCALE: &str = "scale";
/// Handing fields to the wanted child, which has its replicas.
pub const HAND: &str = "hand";
/// Deleting former children.
pub const CLEAN_UP: &str = "cleanUp";
/// Adopting revisions.
pub const ADOPT: &str = "adopt";
/// Deleting revisions.
pub const PRUNE: &str = "prune";
/// Removing a pin.
pub const UNPIN: &str = "unpin";
/// Handing the restart token to the child.
pub const RESTART: &str = "restart";
/// Reading the outputs of a former child.
pub const READ_FORMER: &str = "readFormer";
/// Writing the own status.
pub const STATUS: &str = "status";
