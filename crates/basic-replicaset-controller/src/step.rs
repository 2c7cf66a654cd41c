//! The steps whose failures do not hold up others.

/// Adopting orphans.
pub const ADOPT: &str = "adopt";
/// Creating pods; an item is a slot.
pub const CREATE: &str = "create";
/// Deleting pods; an item is a pod's uid.
pub const DELETE: &str = "delete";
/// Reading live the pods that may belong to the set.
pub const LOOK_UP: &str = "lookUp";
/// Marking a pod of the set.
pub const MARK: &str = "mark";
/// Creating pods again of the revision that served last; an item is a slot.
pub const RECREATE: &str = "recreate";
/// Both of them.
pub const CREATING: [&str; 2] = [CREATE, RECREATE];
/// Refreshing the version in the owner references of pods; an item is a pod's uid.
pub const REFRESH_OWNER: &str = "refreshOwner";
/// Writing the status.
pub const STATUS: &str = "status";
