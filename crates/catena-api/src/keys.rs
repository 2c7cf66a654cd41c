//! The labels and annotations that controllers read and write.
//!
//! Every other label or annotation of a downstream object comes from its template. Keys of one module alone stand there.

/// API group of every kind of the project.
pub const GROUP: &str = "catena.dev";

/// Annotation on a created object: the SHA-256 (hex) of the rendered object. For a pod it also covers the restart
/// token that the pod was created under.
pub const HASH: &str = "catena.dev/template-hash";

/// Label on the child of a `BasicDeployment`: the uid of the `BasicDeployment`.
///
/// Its presence narrows the parent's watch, so that other people's objects never reach the controller.
pub const DEPLOYMENT_UID: &str = "catena.dev/deployment-uid";

/// Annotation on a `ControllerRevision` that a `BasicDeployment` has adopted: the uid of the former `BasicDeployment` of its name, from
/// which the name of the revision follows.
pub const MADE_FOR: &str = "catena.dev/made-for";

/// Label on the pods of a `BasicReplicaSet`: the uid of the `BasicReplicaSet`.
///
/// Its presence narrows the pod watch, and its value is the selector that the scale subresource reports.
pub const REPLICA_SET_UID: &str = "catena.dev/replicaset-uid";

/// Annotation on a pod: the number of its slot in its set, from 0.
///
/// The name of the pod follows from owner, hash and slot, so that a repeated create finds its own pod instead of
/// creating a second one.
pub const SLOT: &str = "catena.dev/slot";

/// Label on a pod, unless the settings name another one: the beginning of [`HASH`], by which scheduling rules tell the
/// pods of a rollout apart (`matchLabelKeys`).
pub const REVISION: &str = "catena.dev/revision";

/// Annotation of kube-controller-manager that ranks pods for scale-down (lower goes first).
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Finalizer on a protected object: it stays until the backup is proven or the object is released without one.
pub const BACKUP_FINALIZER: &str = "catena.dev/backup";

/// Label on a backup: the uid of the object that was backed up. Its presence narrows the watch of backups.
pub const BACKUP_OF: &str = "catena.dev/backup-of";

/// Annotation on a backup: the object that was backed up, the number of the attempt, and the policy that asked for
/// the backup (JSON).
pub const BACKUP_TARGET: &str = "catena.dev/backup-target";

/// Annotation on a held object: the state of its backup, and the reason why the object is held (JSON).
pub const BACKUP_STATUS: &str = "catena.dev/backup-status";

/// Annotation by which a user releases a held object without a backup. Its value is the reason. The uid of the object
/// may precede it, so that a copy of the annotation releases no other object.
pub const FORCE_RELEASE: &str = "catena.dev/force-release";

/// Annotation that a policy asks for before a protected object may be deleted; its value is the object's uid, which no
/// copy of it has.
pub const CONFIRM_DELETE: &str = "catena.dev/confirm-delete";

/// Annotation on a target: the last commands that were carried out on it
/// ([`RecentCommands`](crate::command::RecentCommands), JSON).
///
/// It is written together with the effect of a command, so that no crash makes the effect happen twice.
pub const COMMANDS: &str = "catena.dev/commands";

/// Annotation on the child of a `BasicDeployment`: the fields that the `BasicDeployment` has handed to it beside the replicas, by
/// their paths (JSON).
pub const HANDED: &str = "catena.dev/handed";

/// Annotation on a `BasicDeployment` that was rolled back: the revision on which its child stays
/// ([`Pin`](crate::Pin), JSON). It is removed when it holds no longer.
pub const PINNED_REVISION: &str = "catena.dev/pinned-revision";

/// Annotation on a `ControllerRevision` that became the wanted one again: when it got its present number.
pub const NUMBERED_AT: &str = "catena.dev/numbered-at";

/// Annotation on a command: the uid of the target that it was bound to. An object of the same name with another uid
/// is not its target.
pub const BOUND_TO: &str = "catena.dev/bound-to";

/// Annotation on a command that was created again soon after its deletion: its own uid. command-reaper keeps it whatever
/// its TTL. A copy of the command has another uid, and is not kept.
pub const KEPT: &str = "catena.dev/kept";

/// Annotation on a command whose definition has no status for it: what became of it, with its own uid (JSON), so that a copy
/// of it has not run.
pub const RUN: &str = "catena.dev/run";

/// Label on a command that is bound by this label alone: the uid of its target.
pub const TARGET_UID: &str = "catena.dev/target-uid";

/// Label, with the value `true`, on a CRD of commands that carries its own binding rules.
pub const COMMAND_KIND: &str = "catena.dev/command";

/// Annotation on such a CRD: the binding rules of its commands (YAML).
pub const BINDING: &str = "catena.dev/binding";

/// Label, with the value `true`, on a scratch definition of `kubectl catena upgrade check`, which it removes at its end.
pub const SCRATCH: &str = "catena.dev/upgrade-check";

/// Annotation on a scratch definition: the time until which its check uses it, unless the check extends it. From then on,
/// the next check removes it.
pub const SCRATCH_UNTIL: &str = "catena.dev/upgrade-check-until";

/// Annotation on the ConfigMap of a chart: the version of the settings in it, as the controller computes it from their text.
pub const SETTINGS_VERSION: &str = "catena.dev/settings-version";
