//! The values that only templates of backups can use, beside those of all templates.

use crate::keys;

/// The whole object, also for expressions.
pub const OBJECT: &str = "object";
/// The object's manifest as text.
pub const MANIFEST: &str = "manifest";
/// The same as a structure.
pub const RESTORABLE: &str = "restorable";
/// The number of the attempt.
pub const ATTEMPT: &str = "attempt";
/// All of them.
pub const VALUES: [&str; 4] = [OBJECT, MANIFEST, RESTORABLE, ATTEMPT];

/// Annotations about the deletion of an object, which would be carried over to another one.
pub const OF_A_DELETION: [&str; 3] = [keys::FORCE_RELEASE, keys::CONFIRM_DELETE, keys::BACKUP_STATUS];

/// Annotations by which Kubernetes takes a claim or a volume for bound: with them, one that is created again would be lost.
pub const VOLUME_BINDING: [&str; 2] =
    ["pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"];
