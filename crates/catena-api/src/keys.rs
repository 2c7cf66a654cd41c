//! The labels and annotations that controllers read and write.
//!
//! These are the only keys in code; every other label or annotation of a downstream object comes from its
//! template.

/// API group of every kind of the project.
pub const GROUP: &str = "catena.dev";

/// Annotation on a created object: sha256 (hex) of the text that its template rendered to, and for a pod also
/// of the restart token that it was made under.
pub const HASH: &str = "catena.dev/template-hash";

/// Label on the child of a `BasicDeployment`: the uid of the `BasicDeployment`.
///
/// Its presence narrows the parent's watch, so that other people's objects never reach the controller.
pub const DEPLOYMENT_UID: &str = "catena.dev/deployment-uid";

/// Label on the pods of a `BasicReplicaSet`: the uid of the `BasicReplicaSet`.
///
/// Its presence narrows the pod watch, and its value is the selector that the scale subresource reports.
pub const REPLICA_SET_UID: &str = "catena.dev/replicaset-uid";

/// Annotation on a pod: the number of the place that it fills in its set, from 0.
///
/// The pod's name follows from owner, hash and slot, so that a create that is repeated finds its own pod
/// instead of making a second one.
pub const SLOT: &str = "catena.dev/slot";

/// Annotation of kube-controller-manager that ranks pods for scale-down (lower goes first).
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Finalizer on an object that is not deleted before its backup is proven.
pub const BACKUP_FINALIZER: &str = "catena.dev/backup";

/// Label on a backup: the uid of the object that it is of. Its presence narrows the watch of backups.
pub const BACKUP_OF: &str = "catena.dev/backup-of";

/// Annotation on a backup: which object it is of, and which try it is (JSON).
pub const BACKUP_TARGET: &str = "catena.dev/backup-target";

/// Annotation on an object that is held until its backup is proven: what it waits for, and why (JSON).
pub const BACKUP_STATUS: &str = "catena.dev/backup-status";

/// Annotation by which a user lets a held object go without a backup; its value is the reason.
pub const FORCE_RELEASE: &str = "catena.dev/force-release";

/// Annotation that a policy asks for before a protected object may be deleted; its value is the object's name.
pub const CONFIRM_DELETE: &str = "catena.dev/confirm-delete";

/// Annotation on the child of a `BasicDeployment`: the uid of the last command that was carried out on it.
///
/// It is written together with what the command asks for, so that no crash makes it happen twice.
pub const LAST_COMMAND: &str = "catena.dev/last-command";

/// Annotation on the child of a `BasicDeployment` that was rolled back, and on its `ControllerRevision`: the uid of
/// the command. It leaves the child with the next rendering, and stays on the revision: the proof that outlives the child.
pub const ROLLED_BACK_BY: &str = "catena.dev/rolled-back-by";

/// Annotation on the child of a `BasicDeployment` that was rolled back, and on its `ControllerRevision`: the hash
/// of the rendering that is not wanted. As long as spec and template give that one, the child stays as it is.
pub const REJECTED_HASH: &str = "catena.dev/rejected-hash";

/// Annotation on a command: the uid of the target that it was bound to. A target of the same name with another uid
/// is another object, and the command is not for it.
pub const BOUND_TO: &str = "catena.dev/bound-to";

/// Label on a command that is bound by a label alone: the uid of its target.
pub const TARGET_UID: &str = "catena.dev/target-uid";

/// Label, with the value `true`, on the definition of a kind of commands that says itself how they are bound.
pub const COMMAND_KIND: &str = "catena.dev/command";

/// Annotation on such a definition: how its commands are bound (YAML).
pub const BINDING: &str = "catena.dev/binding";
